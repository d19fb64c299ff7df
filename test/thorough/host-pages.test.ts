/** Pages whose styles and prototypes affect everything: the chat works and looks there like anywhere else. */

import assert from "node:assert/strict";
import { after, type TestContext, test } from "node:test";
import type { Page } from "playwright-core";
import { chatIn, failOnComplaints, standsAt } from "../browser/chat-page.ts";
import { button, chatTag } from "../browser/launcher-page.ts";
import { launchBrowser, openPage } from "../support/browser.ts";
import { say } from "../support/scripted-provider.ts";
import { sitePage, startSite } from "../support/site.ts";
import { startServer } from "../support/start-server.ts";

const browser = await launchBrowser({ after });

const ANSWER = [
  "# Title\n\nA **paragraph** with `code` and [a link](https://a.example/).",
  "| a | b |\n|---|---|\n| 1 | 2 |",
  "> Quoted\n\n- [x] one\n- two\n\n1. three\n\n---",
  "```js\nlet a = 1;\n```",
].join("\n\n");

/** Replacements of built-ins by Prototype.js 1.7, and its additions to prototypes. */
const PROTOTYPE = `<script>
  // Without the function that maps, and of what can only be iterated over it makes nothing.
  Array.from = (items) => {
    const list = [];
    for (let index = 0; index < (items?.length ?? 0); index += 1) list[index] = items[index];
    return list;
  };
  for (const name of ["each", "first", "last", "size", "without", "invoke", "pluck", "inject", "inspect"]) {
    Array.prototype[name] = () => {};
    Function.prototype[name] = () => {};
    String.prototype[name] = () => {};
  }
  Array.prototype.entries = Array.prototype.toArray = function () { return this.slice(); };
  Array.prototype.clear = function () { this.length = 0; };
  Array.prototype.find = Array.prototype.detect = function (test) { return this.filter((it) => test(it))[0]; };
  HTMLElement.prototype.remove = function () { this.parentNode.removeChild(this); return this; };
  HTMLElement.prototype.scrollTo = function () { window.scrollTo(0, this.offsetTop); return this; };
  for (const name of ["update", "replace", "insert", "show", "hide", "toggle", "select", "visible", "match", "store", "down", "up"]) {
    HTMLElement.prototype[name] = function () { throw new Error("HTMLElement.prototype." + name); };
  }
</script>`;

/** The same for MooTools 1.4. */
const MOOTOOLS = `<script>
  Array.from = (item) => item == null ? [] : typeof item === "object" && "length" in item ? [].slice.call(item) : [item];
  for (const name of ["contains", "append", "getLast", "erase", "empty", "flatten", "link", "associate", "pick"]) {
    Array.prototype[name] = () => {};
  }
  for (const name of ["delay", "attempt", "pass", "periodical", "extend", "implement"]) Function.prototype[name] = () => {};
  Element.prototype.scrollTo = function (x, y) { this.scrollLeft = x; this.scrollTop = y; return this; };
  for (const name of ["set", "get", "erase", "empty", "destroy", "dispose", "clone", "grab", "inject", "adopt", "match", "toggle"]) {
    Element.prototype[name] = function () { throw new Error("Element.prototype." + name); };
  }
</script>`;

interface HostPage {
  readonly doctype?: "";
  readonly head?: string;
}

const HOSTS: Readonly<Record<string, HostPage>> = {
  "without a doctype": { doctype: "" },
  "whose rem is 10 px": { head: "<style>html { font-size: 62.5% }</style>" },
  "that resets every element, with !important": {
    head: `<style>*, *::before, *::after { ${[
      ...["margin: 0", "padding: 0", "border: 0", "box-sizing: content-box", "position: static", "float: none"],
      ...["inset: auto", "background: none", "color: red", "font: 9px/1 serif", "text-align: center"],
      ...["text-transform: uppercase", "letter-spacing: 3px", "white-space: nowrap", "list-style: none"],
      ...["overflow: visible", "z-index: 0", "transition: none", "animation: none", "min-height: 0"],
      "visibility: visible",
    ]
      .map((rule) => `${rule} !important`)
      .join(";")} }</style>`,
  },
  "with the prototypes of Prototype.js": { head: PROTOTYPE },
  "with the prototypes of MooTools": { head: MOOTOOLS },
};

/** Looks of the chat: each element with its position and the properties that it could inherit from the page. */
function looks(tag: string, page: Page): Promise<string[]> {
  return page.locator(tag).evaluate((host) => {
    const from = host.matches("agent-chat") ? host.getBoundingClientRect() : new DOMRect();
    // Announcements disappear on their own, sooner on one page than on another.
    return [...(host.shadowRoot?.querySelectorAll("*:not([role=status] *)") ?? [])].map((element) => {
      const { x, y, width, height } = element.getBoundingClientRect();
      const { color, backgroundColor, font, letterSpacing, textAlign } = getComputedStyle(element);
      const isShown = width > 0 || height > 0;
      const box = isShown ? [x - from.x, y - from.y, width, height].map(Math.round).join(" ") : "";
      return [element.localName, element.className, box, color, backgroundColor, font, letterSpacing, textAlign].join(
        "; ",
      );
    });
  });
}

/** Chats in the page's own element, before and after a reload, and opens the launcher on another page. */
async function visitHost(t: TestContext, { doctype, head = "" }: HostPage): Promise<Record<string, string[]>> {
  const turns = [[say(ANSWER)], [say("More. ".repeat(400))]];
  const server = await startServer(t, { turns, env: { PARLEY_ALLOWED_ORIGINS: "*" } });
  const html = (body: string) =>
    sitePage(`${body}<script src="${server.url}/widget.js"></script>`, head).replace(
      "<!doctype html>",
      doctype ?? "$&",
    );
  const body = `<div style="block-size: 500px !important; inline-size: 700px !important">${chatTag(500, 'theme="dark"')}</div>`;
  const site = await startSite(t, { "/": html(body), "/button": html("") });
  const { page, complaints } = await openPage(t, browser, { reducedMotion: "reduce" });
  failOnComplaints(t, complaints);
  await page.goto(site.publicUrl);
  const chat = chatIn(page.locator("agent-chat"));
  await chat.say("A table");
  await chat.answered();
  await page.locator(".tools").first().waitFor({ state: "attached" });
  await page.mouse.move(0, 0);
  await standsAt(chat.messages);
  const answered = await looks("agent-chat", page);
  await chat.say("More");
  await chat.answered(2);
  await standsAt(chat.messages);
  const scrolled = [String(await chat.messages.evaluate((scroller) => Math.round(scroller.scrollTop)))];
  await page.reload();
  await chat.replies.nth(1).getByText("More.").waitFor();
  await chat.input.press("ArrowUp");
  assert.equal(await chat.edited.inputValue(), "More");
  await page.getByRole("button", { name: "New conversation" }).click();
  await chat.greeting.waitFor();
  await page.goto(`${site.publicUrl}/button`);
  await button(page).waitFor();
  const launcher = (await looks("agent-chat-launcher", page)).filter((line) => line.startsWith("button"));
  await button(page).click();
  await chat.input.waitFor();
  await chat.input.press("Escape");
  await chat.input.waitFor({ state: "hidden" });
  return { answered, scrolled, launcher };
}

let plain: Awaited<ReturnType<typeof visitHost>> | undefined;

for (const [name, host] of Object.entries(HOSTS)) {
  test(`the chat works and looks in a page ${name} as in any other, on plain http`, async (t) => {
    plain ??= await visitHost(t, {});
    assert.deepEqual(await visitHost(t, host), plain);
  });
}
