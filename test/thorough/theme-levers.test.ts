/** `accent`, `corners` and `density`: attributes that adapt the chat to a site. */

import assert from "node:assert/strict";
import { after, type TestContext, test } from "node:test";
import type { Page } from "playwright-core";
import { failOnComplaints, openChat, openRows } from "../browser/chat-page.ts";
import { complained, launchBrowser, openPage } from "../support/browser.ts";
import { RED_PIXEL } from "../support/files.ts";
import { call, say, think } from "../support/scripted-provider.ts";
import { sitePage, startSite } from "../support/site.ts";
import { startServer } from "../support/start-server.ts";
import { echo } from "../support/test-tools.ts";

const browser = await launchBrowser({ after });
const file = { after } as Pick<TestContext, "after">;
const server = await startServer(file, { turns: [] });
const site = await startSite(file, {
  "/": sitePage(
    `<script src="${server.url}/widget.js"></script><agent-chat style="height: 400px"></agent-chat>`,
    "<style>html { color-scheme: light dark }</style>",
  ),
});
const { page, complaints } = await openPage(file, browser, { reducedMotion: "reduce" });
await page.goto(site.url);
await page.locator('[part="input"]').waitFor();

/** Sets attributes of the chat, and waits for its update. */
async function set(attributes: Record<string, string>): Promise<void> {
  await page.locator("agent-chat").evaluate(async (chat, values) => {
    for (const [name, value] of Object.entries(values)) chat.setAttribute(name, value);
    await (chat as HTMLElement & { updateComplete: Promise<unknown> }).updateComplete;
  }, attributes);
}

/** Red, green and blue of the rendered colour, from 0 to 255. */
function painted(page: Page, property: string, selector = '[part="header"] .avatar'): Promise<number[]> {
  return page.locator(selector).evaluate((mark, name) => {
    const canvas = document.createElement("canvas").getContext("2d");
    if (!canvas) throw new Error("no canvas");
    canvas.fillStyle = getComputedStyle(mark).getPropertyValue(name);
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  }, property);
}

function luminance(rgb: readonly number[]): number {
  const [red = 0, green = 0, blue = 0] = rgb.map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one: readonly number[], other: readonly number[]): number {
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

test("what stands on the accent has a contrast of 4.5 : 1, whatever the accent is, in both themes", async (t) => {
  failOnComplaints(t, complaints);
  const accents = ["#ffe600", "#7c3aed", "red", "black", "white", "rgb(118 118 118)", "#0a84ff"];
  accents.push("light-dark(#003366, #ffd166)", "oklch(0.7 0.2 140)", "#777", "#ff2d55");
  for (const theme of ["light", "dark"] as const) {
    for (const accent of accents) {
      await set({ accent, theme });
      const ratio = contrast(await painted(page, "background-color"), await painted(page, "color"));
      assert.ok(ratio >= 4.5, `${accent} in ${theme}: ${ratio.toFixed(2)}`);
    }
  }
});

test("the focus ring is seen at 3 : 1 on every surface, whatever the accent is, in both themes", async (t) => {
  failOnComplaints(t, complaints);
  await page.locator('[part="theme-toggle"]').focus();
  await page.keyboard.press("Shift+Tab");
  await page.keyboard.press("Tab");
  for (const theme of ["light", "dark"] as const) {
    for (const accent of ["#ffe600", "white", "black", "blue", "#9f9", "#2563eb", "oklch(0.2 0.1 20)"]) {
      await set({ accent, theme });
      const ring = await painted(page, "outline-color", '[part="theme-toggle"]:focus-visible');
      for (const surface of ["agent-chat", '[part="composer"]']) {
        const ratio = contrast(ring, await painted(page, "background-color", surface));
        assert.ok(ratio >= 3, `${accent} in ${theme} on ${surface}: ${ratio.toFixed(2)}`);
      }
    }
  }
  await set({ accent: "", theme: "light" });
});

test("an accent that is no colour is reported by name, and the default stays", async () => {
  await set({ accent: "", theme: "light" });
  const before = await painted(page, "background-color");
  await set({ accent: "brand-blue; } * { color: red" });
  assert.deepEqual(await painted(page, "background-color"), before);
  await complained({ page, complaints }, /accent must be/);
  assert.deepEqual(complaints.splice(0), [
    '<agent-chat> accent must be a CSS colour, not "brand-blue; } * { color: red"',
  ]);
  await set({ accent: "" });
});

test("corners and density change what they say, and a wrong word is reported with the right ones", async () => {
  const looks = () =>
    page.locator('[part="composer"]').evaluate((card) => {
      const chat = card.closest(".chat") ?? card;
      return [
        Number.parseFloat(getComputedStyle(card).borderRadius),
        Number.parseFloat(getComputedStyle(chat).fontSize),
      ];
    });
  const [round = 0, normal = 0] = await looks();
  await set({ corners: "soft", density: "compact" });
  const [soft = 0, compact = 0] = await looks();
  await set({ corners: "sharp", density: "spacious" });
  const [sharp = 0, spacious = 0] = await looks();
  assert.ok(round > soft && soft > sharp && sharp > 0, [round, soft, sharp].join(" > "));
  assert.ok(compact < normal && normal < spacious, [compact, normal, spacious].join(" < "));
  await set({ corners: "oval", density: "huge", persist: "never" });
  assert.deepEqual(await looks(), [round, normal]);
  for (const name of ["corners", "density", "persist"]) {
    await complained({ page, complaints }, new RegExp(`${name} must be`));
  }
  assert.deepEqual(complaints.splice(0).sort(), [
    '<agent-chat> corners must be one of round, soft, sharp, not "oval"',
    '<agent-chat> density must be one of normal, compact, spacious, not "huge"',
    '<agent-chat> persist must be one of session, none, not "never"',
  ]);
});

test("sharp corners are sharp everywhere: on files, steps, code, tables and images", async (t) => {
  const chat = await openChat(t, browser, {
    agent: { tools: [echo] },
    turns: [
      [think("Hm."), call("c1", "echo", { text: "ping" })],
      [say("`code`\n\n```\ncode\n```\n\n| a |\n|---|\n| b |\n\n![c](https://example.org/c.png)")],
    ],
  });
  const png = { name: "red.png", mimeType: "image/png", buffer: RED_PIXEL };
  const pdf = { name: "a.pdf", mimeType: "application/pdf", buffer: Buffer.from("%PDF-1.7\n") };
  await chat.files.setInputFiles([png, pdf]);
  await chat.page.locator('[part="attachment"]').nth(1).waitFor();
  await chat.say("Everything");
  await chat.page.getByRole("button", { name: "Copy: Table" }).waitFor();
  await openRows(chat);
  const rounded = await chat.page.locator("agent-chat").evaluate(async (element) => {
    element.setAttribute("corners", "sharp");
    await (element as HTMLElement & { updateComplete: Promise<unknown> }).updateComplete;
    return [...(element.shadowRoot?.querySelectorAll("*") ?? [])]
      .filter((it) => /^([5-9]|\d\d)[\d.]*px/.test(getComputedStyle(it).borderTopLeftRadius))
      .map((it) => `${it.localName}.${it.className}`);
  });
  assert.deepEqual(rounded, []);
});
