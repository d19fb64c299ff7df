import assert from "node:assert/strict";
import { after, type TestContext, test } from "node:test";
import type { Frame, Locator } from "playwright-core";
import { type ChatPage, chatIn, failOnComplaints, openChat } from "../browser/chat-page.ts";
import { chatTag, visit } from "../browser/launcher-page.ts";
import { complained, launchBrowser, openPage } from "../support/browser.ts";
import { say } from "../support/scripted-provider.ts";
import { sitePage, startSite } from "../support/site.ts";
import { startServer } from "../support/start-server.ts";

const browser = await launchBrowser({ after });

const LIGHT = "rgb(255, 255, 255)";

const background = ({ page }: Pick<ChatPage, "page">) =>
  page.locator("agent-chat").evaluate((element) => getComputedStyle(element).backgroundColor);

test("the page and the browser's bars follow the system's theme until one is chosen, which outlives a reload and the system's, and again after both were chosen", async (t) => {
  const chat = await openChat(t, browser, { browser: { colorScheme: "dark" } });
  const toggle = (to: string) => chat.page.getByRole("button", { name: `Switch to ${to} theme` });
  const bars = () =>
    chat.page.evaluate(() => {
      const probe = document.createElement("p");
      for (const { media, content } of document.querySelectorAll<HTMLMetaElement>('meta[name="theme-color"]')) {
        if (matchMedia(media).matches) probe.style.color = content;
      }
      return probe.style.color;
    });
  await toggle("light").waitFor();
  const dark = await background(chat);
  assert.notEqual(dark, LIGHT);
  assert.equal(await bars(), dark);
  await chat.page.emulateMedia({ colorScheme: "light" });
  await toggle("dark").waitFor();
  assert.deepEqual([await background(chat), await bars()], [LIGHT, LIGHT]);
  await toggle("dark").click();
  await toggle("light").waitFor();
  await chat.page.reload();
  await toggle("light").waitFor();
  assert.equal(await background(chat), dark);
  await toggle("light").click();
  await chat.page.emulateMedia({ colorScheme: "dark" });
  await chat.page.reload();
  await chat.greeting.waitFor();
  assert.equal(await background(chat), LIGHT);
  // After choosing light in a light system, "follow the system" was the next choice; now dark comes first.
  await toggle("dark").click();
  const auto = chat.page.getByRole("button", { name: "Follow the system theme" });
  await auto.click();
  await chat.page.emulateMedia({ colorScheme: "light" });
  await toggle("dark").waitFor();
  assert.equal(await background(chat), LIGHT);
  await chat.page.reload();
  await toggle("dark").waitFor();
  await chat.page.emulateMedia({ colorScheme: "dark" });
  await toggle("light").waitFor();
});

test("on another site it follows the site's color-scheme, live and without motion, until the site names a theme", async (t) => {
  const { page, complaints } = await visit(t, browser, {
    body: chatTag(400),
    head: "<style>.dark { color-scheme: dark } .both { color-scheme: light dark }</style>",
    browser: { colorScheme: "dark" },
  });
  const toggle = (to: string) => page.getByRole("button", { name: `Switch to ${to} theme` });
  await toggle("dark").waitFor();
  assert.equal(await background({ page }), LIGHT, "a site that names no scheme is light");
  for (const [name, next] of [
    ["dark", "light"],
    ["", "dark"],
    ["both", "light"],
  ] as const) {
    await page.evaluate((it) => {
      document.documentElement.className = it;
    }, name);
    await toggle(next).waitFor();
    assert.equal((await background({ page })) === LIGHT, next === "dark");
  }
  const element = page.locator("agent-chat");
  await element.evaluate((it) => it.setAttribute("theme", "light"));
  await toggle("dark").waitFor();
  await element.evaluate((it) => it.setAttribute("theme", "blue"));
  await toggle("light").waitFor();
  await complained({ page, complaints }, /theme must be/);
  assert.deepEqual(complaints.splice(0), ['<agent-chat> theme must be one of auto, light, dark, not "blue"']);
});

test("the choice holds for every chat of the origin that the site leaves open, at once and later, and for no other", async (t) => {
  const server = await startServer(t, { turns: [] });
  const chats = (...themes: string[]) =>
    themes.map((theme) => `<agent-chat theme="${theme}" style="height: 200px"></agent-chat>`);
  const script = `<script src="${server.url}/widget.js"></script>`;
  const site = await startSite(t, {
    "/": sitePage(`${script}${chats("auto", "auto", "light").join("")}<iframe src="/in"></iframe>`),
    "/in": sitePage(script + chats("auto")),
  });
  const { page, complaints } = await openPage(t, browser, { colorScheme: "light" });
  failOnComplaints(t, complaints);
  await page.goto(site.url);
  const frame = () => page.frames().find((it) => it.url().endsWith("/in")) as Frame;
  const toggles = async (...to: string[]) => {
    const all = [page.locator("agent-chat"), frame().locator("agent-chat")];
    let n = 0;
    for (const chat of all) {
      for (const one of await chat.all()) {
        await one.getByRole("button", { name: new RegExp(`to ${to[n]} theme|the ${to[n++]} theme`) }).waitFor();
      }
    }
    assert.equal(n, to.length);
  };
  const press = (index: number) => page.locator("agent-chat").nth(index).locator('[part="theme-toggle"]').click();
  await toggles("dark", "dark", "dark", "dark");
  await press(1);
  await toggles("light", "light", "dark", "light");
  await page.reload();
  await toggles("light", "light", "dark", "light");
  await press(2);
  await press(0);
  await toggles("system", "system", "light", "system");
  await page.reload();
  await toggles("system", "system", "light", "system");
  await press(0);
  await toggles("dark", "dark", "light", "dark");
});

for (const path of ["/", "/?embed=1"]) {
  test(`${path} fills the viewport without a border or a scrollbar of the document, and has its title unless it is embedded`, async (t) => {
    const chat = await openChat(t, browser, {
      path,
      agent: { agent: "Concierge" },
      browser: { viewport: { width: 500, height: 400 } },
    });
    await chat.greeting.waitFor();
    const title = chat.page.locator('[part="header"]').getByText("Concierge");
    assert.equal(await title.isVisible(), path === "/");
    const box = await chat.page.locator("agent-chat").boundingBox();
    assert.deepEqual(box, { x: 0, y: 0, width: 500, height: 400 });
    const size = await chat.page.evaluate(() => {
      const { scrollWidth, scrollHeight } = document.documentElement;
      const [element] = document.getElementsByTagName("agent-chat");
      return [scrollWidth, scrollHeight, element && getComputedStyle(element).borderWidth];
    });
    assert.deepEqual(size, [500, 400, "0px"]);
  });
}

/** Opens an address of the server in a frame of another site. */
async function openFramed(
  t: TestContext,
  {
    path,
    allowed,
    key,
    isRefused = false,
  }: {
    path: string;
    allowed?: "SITE" | "https://other.example";
    key?: string;
    /** Whether the browser is expected to report a refusal. */
    isRefused?: boolean;
  },
): Promise<{ frame: Frame | undefined; refused: string[] }> {
  const pages: Record<string, string> = {};
  const site = await startSite(t, pages);
  const origins = allowed === "SITE" ? site.publicUrl : allowed;
  const server = await startServer(t, {
    turns: [[say("From the frame.")]],
    env: {
      ...(origins === undefined ? {} : { PARLEY_ALLOWED_ORIGINS: origins }),
      ...(key === undefined ? {} : { PARLEY_CHAT_KEY: key }),
    },
  });
  pages["/"] = sitePage(`<iframe src="${server.url}${path}" width="400" height="500"></iframe>`);
  const { page, complaints } = await openPage(t, browser);
  const policy = /frame-ancestors|Content Security Policy/;
  failOnComplaints(t, complaints, policy);
  const refusal = isRefused ? page.waitForEvent("console", (message) => policy.test(message.text())) : undefined;
  await page.goto(site.publicUrl);
  await refusal;
  const frame = page.frames().find((it) => it.url().startsWith(server.url));
  return { frame, refused: complaints.filter((text) => policy.test(text)) };
}

test("a named site may show the embedded chat in a frame, and it works there", async (t) => {
  const { frame, refused } = await openFramed(t, { path: "/?embed=1", allowed: "SITE" });
  assert.deepEqual(refused, []);
  assert.ok(frame);
  await chatIn(frame).ask("Hi", "From the frame.");
});

test("with keys and no list, any site may show the embedded chat, which asks for the key", async (t) => {
  const { frame } = await openFramed(t, { path: "/?embed=1", key: "c-1" });
  assert.ok(frame);
  const chat = chatIn(frame);
  await chat.keyField.fill("c-1");
  await chat.keyField.press("Enter");
  await chat.ask("Hi", "From the frame.");
});

for (const [path, allowed] of [
  ["/?embed=1", "https://other.example"],
  ["/?embed=1", undefined],
  ["/", "SITE"],
] as const) {
  test(`${path} is refused in a frame where ${allowed ?? "nobody"} is allowed`, async (t) => {
    const { frame, refused } = await openFramed(t, {
      path,
      ...(allowed && { allowed }),
      isRefused: true,
    });
    assert.equal(refused.length > 0, true);
    assert.equal(frame, undefined);
  });
}

test("with more contrast wanted, quiet texts have the colour of the others, and lines are stronger", async (t) => {
  const chat = await openChat(t, browser, {
    agent: { chat: { disclaimer: "It may be wrong.", suggestions: ["One"] } },
  });
  const text = chat.page.locator(".welcome");
  const quiet = chat.page.locator('[part="disclaimer"]');
  const line = chat.page.locator('[part="suggestion"]');
  const strongLine = chat.page.locator('[part="composer"]');
  const style = (locator: Locator, name: "color" | "borderTopColor") =>
    locator.evaluate((it, property) => getComputedStyle(it)[property], name);
  const alike = async () => [
    (await style(text, "color")) === (await style(quiet, "color")),
    (await style(line, "borderTopColor")) === (await style(strongLine, "borderTopColor")),
  ];
  await line.waitFor();
  await chat.input.blur();
  assert.deepEqual(await alike(), [false, false]);
  for (const colorScheme of ["light", "dark"] as const) {
    await chat.page.emulateMedia({ contrast: "more", colorScheme, reducedMotion: "reduce" });
    assert.deepEqual(await alike(), [true, true], colorScheme);
  }
});
