import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { until } from "./mount.ts";
import { startScriptedServer } from "./scripted-server.ts";

const { addLauncher } = await import("../../widget/agent-chat-launcher.ts");
const { defineElements } = await import("../../widget/define.ts");
const { readScriptTag } = await import("../../widget/script-tag.ts");

afterEach(() => document.body.replaceChildren());

const server = "https://chat.example/";

const launcher = () => document.querySelector("agent-chat-launcher");

test("a page without a chat gets one launcher, however often it is asked for", () => {
  addLauncher({ server, key: "k", wantsLauncher: true });
  addLauncher({ server, key: "k", wantsLauncher: true });
  assert.equal(document.querySelectorAll("agent-chat-launcher").length, 1);
});

test("a page that placed the chat itself gets no launcher", () => {
  document.body.append(document.createElement("agent-chat"));
  addLauncher({ server, key: "", wantsLauncher: true });
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

test("elements are defined once: a second script finds them and does nothing", () => {
  assert.equal(defineElements(), false);
});

test("the script tag says where the server is, behind a path prefix too, and brings the key", () => {
  const script = document.createElement("script");
  script.setAttribute("src", "https://acme.example/chat/widget.js?v=1");
  script.dataset.key = " wk ";
  assert.deepEqual(readScriptTag(script), {
    server: "https://acme.example/chat/",
    key: "wk",
    wantsLauncher: true,
  });
  assert.deepEqual(readScriptTag(null), { server, key: "", wantsLauncher: true });
});

test("the panel opens with the site's key, closes on Escape, gives the focus back and keeps its chat", async (t) => {
  const { url } = await startScriptedServer(t, { key: "wk" });
  addLauncher({ server: url, key: "wk", wantsLauncher: true });
  const element = launcher();
  assert.ok(element);
  await element.updateComplete;
  const button = element.renderRoot.querySelector<HTMLButtonElement>("[part=launcher]");
  const panel = element.renderRoot.querySelector<HTMLElement>("[part=panel]");
  assert.ok(button && panel);
  assert.equal(element.renderRoot.querySelector("agent-chat"), null, "built on first opening");
  assert.equal(button.getAttribute("aria-expanded"), "false");
  assert.equal(button.getAttribute("aria-controls"), panel.id);

  button.click();
  const chat = await until(element, () => element.renderRoot.querySelector("agent-chat"));
  await until(chat, () => chat.renderRoot.querySelector("textarea"));
  assert.equal(button.getAttribute("aria-expanded"), "true");
  assert.equal(panel.hidden, false);
  assert.equal(chat.apiKey, "wk");
  assert.equal(chat.hasAttribute("api-key"), false);

  chat.dispatchEvent(
    new KeyboardEvent("keydown", { key: "Escape", bubbles: true, cancelable: true }),
  );
  await until(element, () => panel.hidden);
  await element.updateComplete;
  assert.equal(element.shadowRoot?.activeElement, button);
  button.click();
  await until(element, () => !panel.hidden);
  assert.equal(element.renderRoot.querySelector("agent-chat"), chat);
});
