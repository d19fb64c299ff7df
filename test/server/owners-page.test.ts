/** `chat` of an agent: validation, and what the server returns of it. */

import assert from "node:assert/strict";
import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { ChatDefinition } from "../../server/agent/chat-definition.ts";
import { checkAgent } from "../../server/agent/define.ts";
import { CHOICES, checkPage } from "../../server/agent/owners-page.ts";
import type { AgentInfo } from "../../server/protocol/chat.ts";
import { CHAT } from "../../widget/element/properties.ts";
import { LAUNCHER } from "../../widget/launcher/properties.ts";
import { refused } from "../support/refused.ts";
import { startServer } from "../support/start-server.ts";
import { temporaryProject } from "../support/temporary-project.ts";

const SVG =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><script>alert(1)</script><path d="M0 0h8v8z"/></svg>';
const PNG = Buffer.from("89504e470d0a1a0a0000000d4948445200000001", "hex");

const NO_TEXT = /must be a text, or texts by language: \{ en: "…", de: "…" \}\.$/;
const NO_FILE = /^chat\.logo must be a file inside the project's folder, such as "logo\.svg"\.$/;
const NO_URL = /must be an address of http or https, such as https:\/\/example\.com\/privacy, or a path\.$/;
const NO_COLOUR =
  /^chat\.accent(?:\.\w+)? must be a colour such as "#0a7" or "#00aa77", or \{ light: "#…", dark: "#…" \}\.$/;
const NO_TIME = /^chat\.button\.\w+ must be a whole number of milliseconds from 0, such as 5000\.$/;

const MISTAKES: [chat: unknown, sentence: RegExp][] = [
  ["Hello", /^chat must be an object, such as \{ welcome: "Hello!" \}\.$/],
  [{ welcom: "x" }, /^chat\.welcom is not a field .* Did you mean welcome\?$/],
  [{ colour: "x" }, /^chat\.colour is not a field .* The fields are title, welcome, .*button\.$/],
  [{ welcome: 5 }, /^chat\.welcome must be a text/],
  [{ title: {} }, NO_TEXT],
  [{ title: { en: 5 } }, /^chat\.title\.en must be a text/],
  [{ title: { "not a language": "x" } }, /^chat\.title has a text for "not a language", which is no language/],
  [{ placeholder: ["x"] }, NO_TEXT],
  [{ disclaimer: "x".repeat(20_001) }, /^chat\.disclaimer must be at most 20000 characters\.$/],
  [{ suggestions: "x" }, /^chat\.suggestions must be an array\.$/],
  [{ suggestions: Array(9).fill("x") }, /^chat\.suggestions must have at most 8 entries, but has 9\.$/],
  [{ suggestions: [{ label: "x" }] }, /^chat\.suggestions\[0\]\.prompt is missing\.$/],
  [{ suggestions: ["a", { label: "x", promt: "x" }] }, /^chat\.suggestions\[1\]\.promt .* Did you mean prompt\?$/],
  [{ links: { label: "x", url: "/x" } }, /^chat\.links must be an array\.$/],
  [{ links: Array(5).fill({ label: "x", url: "/x" }) }, /^chat\.links must have at most 4 entries, but has 5\.$/],
  [{ links: ["https://example.com"] }, /^chat\.links\[0\] must be an object with the fields label, url\.$/],
  [{ links: [{ url: "/x" }] }, /^chat\.links\[0\]\.label is missing\.$/],
  ...[
    "javascript:alert(1)",
    "data:text/html,x",
    "ftp://example.com/",
    "//example.com/",
    "/\t/example.com/",
    "/\\example.com",
    "privacy",
    "mailto:a@example.com",
    "https:x",
    5,
  ].map((url): [unknown, RegExp] => [{ links: [{ label: "x", url }] }, NO_URL]),
  [{ signIn: { url: "javascript:alert(1)" } }, NO_URL],
  [{ signIn: "/login" }, /^chat\.signIn must be an object with the fields label, url\.$/],
  [{ signIn: { href: "/login" } }, /^chat\.signIn\.href is not a field/],
  [{ signOut: { url: "data:text/html,x" } }, NO_URL],
  [{ signOut: true }, /^chat\.signOut must be an object with the fields label, url\.$/],
  [{ accent: "red" }, NO_COLOUR],
  [{ accent: "#12345" }, NO_COLOUR],
  [{ accent: { light: "#000000", dark: "x" } }, NO_COLOUR],
  [{ accent: { light: "#000000" } }, /^chat\.accent\.dark is missing\.$/],
  [{ logo: "https://example.com/logo.svg" }, NO_FILE],
  [{ logo: "//example.com/logo.svg" }, NO_FILE],
  [{ logo: "data:image/png;base64,AAAA" }, NO_FILE],
  [{ logo: "gone.svg" }, /^chat\.logo names the file "gone\.svg", which is not in \S+\.$/],
  [{ logo: "." }, /^chat\.logo names the file "\.", which is not in/],
  [{ logo: "../outside.svg" }, /^chat\.logo names the file .*, which is (?:not in|outside of)/],
  [
    { favicon: { light: "logo.svg", dark: "link.svg" } },
    /^chat\.favicon\.dark names the file "link\.svg", which is outside of the project's folder\. Copy it there\.$/,
  ],
  [
    { logo: "large.png" },
    /^chat\.logo names the file "large\.png", which has 262145 bytes: at most 256 KiB are served\.$/,
  ],
  [{ logo: "page.svg" }, /^chat\.logo names the file "page\.svg", which is no PNG, JPEG, WebP or SVG image\.$/],
  [{ font: 5 }, /^chat\.font must be a list of font families, such as "Inter, system-ui, sans-serif"\.$/],
  [{ font: "Inter; color: red" }, /^chat\.font must be a list/],
  [{ font: 'url("https://example.com/f")' }, /^chat\.font must be a list/],
  [{ corners: "rounded" }, /^chat\.corners must be one of "round", "soft", "sharp"\. Did you mean "round"\?$/],
  [{ theme: "drak" }, /^chat\.theme must be one of "auto", "light", "dark"\. Did you mean "dark"\?$/],
  [{ density: 1 }, /^chat\.density must be one of "normal", "compact", "spacious"\.$/],
  [{ tools: "title" }, /^chat\.tools must be one of .* Did you mean "titles"\?$/],
  [{ thinking: true }, /^chat\.thinking must be one of "auto", "open", "closed", "hidden"\.$/],
  [{ conversations: "off" }, /^chat\.conversations must be true or false\.$/],
  [{ feedback: 1 }, /^chat\.feedback must be true or false\.$/],
  [
    { button: "chat" },
    /^chat\.button must be an object with the fields position, icon, size, label, preview, previewAfter, autoOpen\.$/,
  ],
  [{ button: { postion: "x" } }, /^chat\.button\.postion is not a field .* Did you mean position\?$/],
  [{ button: { position: "bottom-left" } }, /^chat\.button\.position must be one of "bottom-end"/],
  [{ button: { icon: "sparks" } }, /Did you mean "spark"\?$/],
  [{ button: { size: 48 } }, /^chat\.button\.size must be one of "medium", "small", "large"\.$/],
  [{ button: { label: 5 } }, NO_TEXT],
  [{ button: { preview: [] } }, NO_TEXT],
  [{ button: { previewAfter: -1 } }, NO_TIME],
  [{ button: { autoOpen: "5000" } }, NO_TIME],
];

for (const [chat, sentence] of MISTAKES) {
  test(`a wrong value in chat is refused in one sentence: ${JSON.stringify(chat).slice(0, 100)}`, (t) => {
    const folder = temporaryProject(t, {
      "project/logo.svg": SVG,
      "project/large.png": "x".repeat(262_145),
      "project/page.svg": "<html><svg></svg></html>",
      "outside.svg": SVG,
    });
    symlinkSync(join(folder, "outside.svg"), join(folder, "project/link.svg"));
    assert.throws(() => checkPage(chat, join(folder, "project"), () => {}), refused(sentence));
  });
}

test("the words that chat takes are those of the elements' properties", () => {
  for (const [name, words] of Object.entries(CHOICES)) {
    assert.deepEqual(words, (CHAT[name] ?? LAUNCHER[name])?.choices, name);
  }
});

const OWNERS: ChatDefinition = {
  title: { en: "Acme help", de: "Acme-Hilfe" },
  welcome: { de: "Hallo!", en: "Hello!" },
  placeholder: "Ask",
  disclaimer: { ja: "一", fr: "Un" },
  suggestions: ["One", { label: "Two", prompt: { en: "Tell me two", de: "Sag zwei" } }],
  links: [{ label: "Privacy", url: "https://example.com/privacy" }],
  signIn: { label: "Sign in", url: "/login" },
  signOut: { label: { en: "Leave", de: "Gehen" } },
  accent: { light: "#000", dark: "#FFF" },
  logo: "logo.svg",
  corners: "sharp",
  font: 'Inter, "Open Sans", sans-serif',
  conversations: true,
  button: { position: "bottom-start", label: { en: "</script>" }, autoOpen: 5000 },
};

test("what the owner says of the chat is served to clients, in all languages and in one, with the addresses of images", async (t) => {
  const folder = temporaryProject(t, { "logo.svg": SVG });
  const { url } = await startServer(t, { turns: [], folder, agent: { chat: OWNERS } });
  const info: AgentInfo = await (await fetch(`${url}/api/info`)).json();
  const { welcome, suggestions, disclaimer, chat } = info;
  assert.deepEqual([welcome, suggestions, disclaimer], ["Hello!", ["One", "Tell me two"], "一"]);
  const logo = chat?.logo?.light ?? "";
  assert.deepEqual(chat, {
    ...OWNERS,
    suggestions: [{ label: "One", prompt: "One" }, OWNERS.suggestions?.[1]],
    accent: { light: "#000000", dark: "#ffffff" },
    logo: { light: logo, dark: logo },
    favicon: { light: logo, dark: logo },
  });
  const page = await (await fetch(url)).text();
  assert.match(page, /<title>Acme help</);
  assert.ok(page.includes(`<link rel="icon" href="${logo}">`), page);
  assert.deepEqual(JSON.parse(/id="page-data">([^<]*)</.exec(page)?.[1] ?? "").info, info);

  assert.match(logo, /^chat\/[\w-]{22}\.svg$/);
  const image = await fetch(`${url}/${logo}`);
  assert.equal(await image.text(), SVG);
  const headers = Object.fromEntries(image.headers);
  assert.equal(headers["content-type"], "image/svg+xml");
  assert.equal(headers["content-security-policy"], "default-src 'none'; sandbox");
  assert.equal(headers["x-content-type-options"], "nosniff");
  assert.equal(headers["cross-origin-resource-policy"], "cross-origin");
  assert.match(headers["cache-control"] ?? "", /immutable/);
  for (const path of ["chat/logo.svg", "chat/", "chat/..%2fagent.ts"]) {
    assert.equal((await fetch(`${url}/${path}`)).status, 404, path);
  }
});

test("the looks of the button stand at the head of /widget.js, in all its forms, and are those of the agent that serves now", async (t) => {
  const { server, url } = await startServer(t, { turns: [], agent: { chat: OWNERS }, folder: logoFolder(t) });
  const plain = await startServer(t, { turns: [] });
  const read = async (from: string, coding: string) =>
    (await fetch(`${from}/widget.js`, { headers: { "accept-encoding": coding } })).text();
  const built = await read(plain.url, "identity");
  assert.match(built, /const PARLEY_BUTTON=\{\};/);
  const button =
    '{"":{"position":"bottom-start","label":"</script>","corners":"sharp","accent":"light-dark(#000000,#ffffff)","auto-open":5000,"auto-open-once":5000},"en":{"label":"</script>"}}';
  for (const coding of ["identity", "gzip", "br"]) {
    assert.equal(
      await read(url, coding),
      built.replace("PARLEY_BUTTON={}", () => `PARLEY_BUTTON=${button}`),
      coding,
    );
  }
  await server.replaceAgent({ agent: checkAgent({ name: "B", model: "demo", chat: { accent: "#00f" } }) });
  assert.match(await read(url, "br"), /PARLEY_BUTTON=\{"":\{"accent":"light-dark\(#0000ff,#6b6bff\)"\}\};/);
  await server.replaceAgent({ agent: checkAgent({ name: "C", model: "demo" }) });
  assert.equal(await read(url, "br"), built);
});

const logoFolder = (t: Parameters<typeof temporaryProject>[0]) => temporaryProject(t, { "logo.svg": SVG });

test("an accent that is hard to read is darkened in the light theme and lightened in the dark one, and the log says so", async (t) => {
  const { url, log } = await startServer(t, { turns: [], agent: { chat: { accent: "#fd0" } } });
  const { chat } = await (await fetch(`${url}/api/info`)).json();
  assert.deepEqual(chat.accent, { light: "#877500", dark: "#ffdd00" });
  const said = log.filter((record) => record.includes("chat.accent"));
  assert.equal(said.length, 1);
  assert.match(
    said[0] ?? "",
    /chat\.accent #ffdd00 has a contrast of 1\.3 : 1 in the light theme, where text needs 4\.5 : 1\. The chat uses #877500 there\./,
  );
  const readable = await startServer(t, { turns: [], agent: { chat: { accent: { light: "#036", dark: "#9cf" } } } });
  assert.ok(!readable.log.some((record) => record.includes("accent")));
});

test("an image is what its bytes say, whatever its name says, and each theme may have its own", async (t) => {
  const folder = temporaryProject(t, { "day.jpg": '<?xml version="1.0"?><!-- a --><svg/>' });
  writeFileSync(join(folder, "night.svg"), PNG);
  const { url } = await startServer(t, {
    turns: [],
    folder,
    agent: { chat: { favicon: { light: "day.jpg", dark: join(folder, "night.svg") } } },
  });
  const { chat } = await (await fetch(`${url}/api/info`)).json();
  const { light, dark } = chat.favicon;
  assert.match(light, /\.svg$/);
  assert.match(dark, /\.png$/);
  assert.equal(chat.logo, undefined);
  const page = await (await fetch(url)).text();
  for (const [theme, address] of Object.entries({ light, dark })) {
    assert.ok(page.includes(`<link rel="icon" href="${address}" media="(prefers-color-scheme: ${theme})">`), page);
  }
  assert.equal((await fetch(`${url}/${dark}`)).headers.get("content-security-policy"), null);
});

test("the page may load pictures of the hosts that PARLEY_IMAGE_HOSTS names, and of no other", async (t) => {
  const { url } = await startServer(t, {
    turns: [],
    env: { PARLEY_IMAGE_HOSTS: "Images.example.com, cdn.example.org" },
  });
  const page = await fetch(url);
  const policy = page.headers.get("content-security-policy") ?? "";
  assert.match(policy, /img-src 'self' blob: data: https:\/\/images\.example\.com https:\/\/cdn\.example\.org;/);
  const { images } = JSON.parse(/id="page-data">([^<]*)</.exec(await page.text())?.[1] ?? "");
  assert.deepEqual(images, ["images.example.com", "cdn.example.org"]);
  for (const wrong of ["*.example.com", "*", "https://example.com", "example.com/a", "example.com:8443", "'self'"]) {
    const start = () => startServer(t, { turns: [], env: { PARLEY_IMAGE_HOSTS: wrong } });
    await assert.rejects(
      start,
      refused(/^PARLEY_IMAGE_HOSTS must list whole names of servers such as images\.example\.com/),
    );
  }
});

test("below a path, the page and its images are where the page says", async (t) => {
  const folder = logoFolder(t);
  const { url } = await startServer(t, {
    turns: [],
    folder,
    agent: { chat: { logo: "logo.svg" } },
    env: { PARLEY_BASE_PATH: "/support" },
  });
  const page = `${url}/support/`;
  const [, icon = ""] = /<link rel="icon" href="([^"]+)">/.exec(await (await fetch(page)).text()) ?? [];
  assert.equal(await (await fetch(new URL(icon, page))).text(), SVG);
  const { chat } = await (await fetch(`${page}api/info`)).json();
  assert.equal(chat.logo.light, icon);
});
