import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { mount, until } from "./mount.ts";
import { startScriptedServer } from "./scripted-server.ts";

/** What happy-dom lets a test pretend about the system. */
declare global {
  interface Window {
    happyDOM: { settings: { device: { prefersColorScheme: "light" | "dark" } } };
  }
}

/** Changes the system's scheme; happy-dom looks at it when the window is resized. */
function changeSystem(scheme: "light" | "dark"): void {
  window.happyDOM.settings.device.prefersColorScheme = scheme;
  window.dispatchEvent(new Event("resize"));
}

beforeEach(() => {
  localStorage.clear();
  changeSystem("light");
});

test("the toggle's name and icon follow the system while the theme is auto", async (t) => {
  const server = await startScriptedServer(t);
  const page = await mount(t, { server: server.url });
  const toggle = await page.shown("[part=theme-toggle]");
  const name = () => toggle.getAttribute("aria-label");
  assert.equal(name(), "Switch to dark theme");
  const moon = toggle.querySelector("path")?.getAttribute("d");
  changeSystem("dark");
  await until(page.chat, () => name() === "Switch to light theme");
  assert.notEqual(toggle.querySelector("path")?.getAttribute("d"), moon);
  changeSystem("light");
  await until(page.chat, () => name() === "Switch to dark theme");
});

test("a chosen theme does not care about the system", async (t) => {
  const server = await startScriptedServer(t);
  const page = await mount(t, { server: server.url, theme: "light" });
  changeSystem("dark");
  assert.equal(page.chat.isUpdatePending, false);
  await page.click("[part=theme-toggle]");
  assert.equal(page.chat.theme, "dark");
});

test("an element outside the page does not listen, and catches up when it comes back", async (t) => {
  const server = await startScriptedServer(t);
  const page = await mount(t, { server: server.url });
  page.chat.remove();
  changeSystem("dark");
  assert.equal(page.chat.isUpdatePending, false);
  document.body.append(page.chat);
  await page.chat.updateComplete;
  const label = page.find("[part=theme-toggle]")?.getAttribute("aria-label");
  assert.equal(label, "Switch to light theme");
});
