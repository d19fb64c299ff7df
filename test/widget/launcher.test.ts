import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import "./browser-globals.ts";

// The panel is for real browsers: its chunk cannot be had here.
Object.assign(globalThis, { PARLEY_CHUNKS: "-none" });

const { addLauncher } = await import("../../widget/agent-chat-launcher.ts");
const { defineElements } = await import("../../widget/define.ts");
defineElements();
const { readScriptTag } = await import("../../widget/script-tag.ts");

afterEach(() => document.body.replaceChildren());

const server = "https://chat.example/";

const launcher = () => document.querySelector("agent-chat-launcher");

test("a page without a chat gets one launcher, however often it is asked for", () => {
  addLauncher({ isTag: true, server, key: "k", wantsLauncher: true, attributes: {} });
  addLauncher({ isTag: true, server, key: "k", wantsLauncher: true, attributes: {} });
  assert.equal(document.querySelectorAll("agent-chat-launcher").length, 1);
});

test("a page that placed the chat itself gets no launcher", () => {
  const chat = document.createElement("agent-chat");
  chat.server = server;
  document.body.append(chat);
  addLauncher({ isTag: true, server, key: "", wantsLauncher: true, attributes: {} });
  assert.equal(launcher(), null);
});

test("a page that will place the chat later says so on the script tag, and gets no launcher", () => {
  const script = document.createElement("script");
  script.setAttribute("src", "https://chat.example/widget.js");
  script.dataset.launcher = "none";
  addLauncher(readScriptTag(script));
  assert.equal(launcher(), null);
  script.dataset.launcher = "something";
  addLauncher(readScriptTag(script));
  assert.ok(launcher());
});

test("what else stands on the script tag are the launcher's attributes, and a name that is none is reported", (t) => {
  const report = t.mock.method(console, "error", () => {});
  const attributes = { position: "top-start", lang: "fr", colour: "red" };
  addLauncher({ isTag: true, server, key: "", wantsLauncher: true, attributes });
  assert.equal(launcher()?.position, "top-start");
  assert.equal(launcher()?.lang, "fr");
  assert.match(
    String(report.mock.calls[0]?.arguments[0]),
    /^<agent-chat-launcher> data-colour must be one of .*data-position.*, not "red"$/,
  );
});

test("elements are defined once: a second script finds them and does nothing", () => {
  assert.equal(defineElements(), false);
});

test("the script tag says where the server is, behind a path prefix too, and brings the key", () => {
  const script = document.createElement("script");
  script.setAttribute("src", "https://acme.example/chat/widget.js?v=1");
  script.dataset.key = " wk ";
  script.dataset.position = "top-end";
  script.dataset.autoOpen = "500";
  assert.deepEqual(readScriptTag(script), {
    isTag: true,
    server: "https://acme.example/chat/",
    key: "wk",
    wantsLauncher: true,
    attributes: { position: "top-end", "auto-open": "500" },
  });
  assert.deepEqual(readScriptTag(null), {
    isTag: false,
    server,
    key: "",
    wantsLauncher: false,
    attributes: {},
  });
});
