/** The effects of an agent's `chat` on the page at `/`, on elements of sites, and on the launcher button. */

import assert from "node:assert/strict";
import type { IncomingHttpHeaders } from "node:http";
import { join } from "node:path";
import { after, test } from "node:test";
import { buildSync } from "esbuild";
import type { Locator } from "playwright-core";
import type { ChatDefinition } from "../../server/agent/chat-definition.ts";
import { Unauthorized } from "../../server/auth/authenticate.ts";
import { axeFindings } from "../support/axe.ts";
import { launchBrowser, openPage } from "../support/browser.ts";
import { DIST } from "../support/command.ts";
import { say } from "../support/scripted-provider.ts";
import { sitePage, startSite } from "../support/site.ts";
import { startServer } from "../support/start-server.ts";
import { temporaryProject } from "../support/temporary-project.ts";
import { openChat, shown, watchAddresses, watchShifts } from "./chat-page.ts";
import { button, chatTag, PHONE, panel, preview, script, visit } from "./launcher-page.ts";
import { listen, untilHeard } from "./listening.ts";

const browser = await launchBrowser({ after });

const LOGO = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 60 20" width="60" height="20"><script>top.location = "https://evil.example"</script><path fill="#0a7d4f" d="M0 0h60v20H0z"/></svg>`;

const OWNERS: ChatDefinition = {
  title: { en: "Acme Help", de: "Acme-Hilfe" },
  welcome: { en: "Hello! How can we help?", de: "Hallo! Wie können wir helfen?" },
  placeholder: { en: "Ask us", de: "Fragen Sie uns" },
  disclaimer: { en: "Answers may be wrong.", de: "Antworten können falsch sein." },
  suggestions: [{ label: { en: "My order", de: "Meine Bestellung" }, prompt: { en: "Order?", de: "Bestellung?" } }],
  links: [
    { label: { en: "Privacy", de: "Datenschutz" }, url: "https://example.com/privacy" },
    { label: "Terms", url: "/terms" },
  ],
  accent: { light: "#0a7d4f", dark: "#6fdcb0" },
  logo: "logo.svg",
  font: "Georgia, serif",
  corners: "sharp",
  density: "compact",
  button: { position: "top-start", size: "large", label: { en: "Ask us", de: "Fragen" } },
};

const PIXEL = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

const colour = (of: Locator, name: string) =>
  of.evaluate((node, it) => getComputedStyle(node).getPropertyValue(it), name);

for (const [locale, texts] of Object.entries({
  "de-AT": [
    "Acme-Hilfe",
    "Hallo!",
    "Wie können wir helfen?",
    "Fragen Sie uns",
    "Meine Bestellung",
    "Bestellung?",
    "Datenschutz",
  ],
  "nl-NL": ["Acme Help", "Hello!", "How can we help?", "Ask us", "My order", "Order?", "Privacy"],
})) {
  test(`the page at / is its owner's, in the reader's language (${locale}): title, logo, texts, links, colours`, async (t) => {
    const [title, hello, more, placeholder, label = "", prompt, privacy] = texts;
    const chat = await openChat(t, browser, {
      turns: [[say("Yes.")]],
      folder: temporaryProject(t, { "logo.svg": LOGO }),
      agent: { agent: "Ada", chat: OWNERS },
      browser: { locale, colorScheme: "light" },
    });
    const { page, server } = chat;
    assert.deepEqual((await shown(chat.greeting)).split(/\n+/), [hello, more]);
    assert.equal(await page.title(), title);
    assert.equal(await shown(page.locator(".agent")), title);
    assert.equal(await page.locator("textarea").getAttribute("placeholder"), placeholder);
    const logos = page.locator('[part="logo"]');
    assert.deepEqual(
      await logos.evaluateAll((list) => list.map((it) => (it as HTMLImageElement).naturalWidth)),
      [60, 60],
    );
    const isSeen = () => logos.evaluateAll((list) => list.map((it) => it.checkVisibility()));
    assert.deepEqual(await isSeen(), [false, true], "the greeting shows it, and not the header besides");
    assert.equal(await page.locator(".avatar, .mark").count(), 0);
    const links = page.locator('[part="link"]');
    assert.deepEqual(
      await links.evaluateAll((list) => (list as HTMLAnchorElement[]).map((it) => [it.innerText, it.href, it.target])),
      [
        [privacy, "https://example.com/privacy", "_blank"],
        ["Terms", `${server.url}/terms`, "_blank"],
      ],
    );
    assert.equal(await colour(chat.greeting, "--_accent").then((it) => it.includes("#0a7d4f")), true);
    assert.match(await colour(page.locator(".chat"), "font-family"), /^Georgia/);
    assert.deepEqual(
      await page.locator("agent-chat").evaluate((it) => ["corners", "density"].map((name) => it.getAttribute(name))),
      ["sharp", "compact"],
    );
    const card = page.getByRole("button", { name: `${label} ${prompt}`, exact: true });
    assert.equal(await shown(card), `${label}\n${prompt}`, "what it will send is seen where there is the room");
    await page.setViewportSize({ width: 390, height: 844 });
    assert.equal(await shown(page.getByRole("button", { name: label, exact: true })), label);
    await page.getByRole("button", { name: label, exact: true }).click();
    await chat.answered();
    assert.equal(await shown(chat.questions.locator(".bubble")), prompt);
    assert.deepEqual(await isSeen(), [true]);
    assert.deepEqual(await axeFindings(page), []);
  });
}

test("an owner's page in Arabic runs from right to left, below a path, on a phone, in forced colours, and axe finds nothing", async (t) => {
  const agent = {
    chat: {
      title: { ar: "مساعدة أكمي", en: "Acme Help" },
      welcome: { ar: "مرحبا! كيف يمكننا المساعدة؟", en: "Hello!" },
      suggestions: [{ label: { ar: "طلبي", en: "My order" }, prompt: "order" }],
      links: [{ label: { ar: "الخصوصية", en: "Privacy" }, url: "/privacy" }],
      logo: "logo.svg",
      accent: "#5b21b6",
    },
  };
  for (const [colorScheme, forcedColors] of [
    ["light", "none"],
    ["dark", "none"],
    ["dark", "active"],
  ] as const) {
    const { page, greeting, server } = await openChat(t, browser, {
      turns: [],
      folder: temporaryProject(t, { "logo.svg": LOGO }),
      agent,
      env: { PARLEY_BASE_PATH: "/support" },
      path: "/support/",
      browser: { ...PHONE, locale: "ar", colorScheme, forcedColors },
    });
    assert.match(await shown(greeting), /^مرحبا!\s+كيف يمكننا المساعدة؟$/);
    assert.equal(await page.evaluate("getComputedStyle(document.querySelector('agent-chat')).direction"), "rtl");
    assert.equal(await page.title(), "مساعدة أكمي");
    const logo = page.locator('.greeting [part="logo"]');
    assert.equal(await logo.evaluate((it) => (it as HTMLImageElement).naturalWidth), 60);
    const link = page.locator('[part="link"]');
    assert.equal(await link.evaluate((it) => (it as HTMLAnchorElement).href), `${server.url}/privacy`);
    assert.deepEqual(await axeFindings(page), []);
  }
});

test("the page is complete when it is first painted, asks no other server, and shows what the owner changes at the next load", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [],
    folder: temporaryProject(t, { "logo.svg": LOGO }),
    agent: { chat: OWNERS },
  });
  const { page, server } = chat;
  const { requests } = watchAddresses(page);
  const shifted = await watchShifts(page);
  await page.reload({ waitUntil: "networkidle" });
  await shown(chat.greeting);
  assert.deepEqual(
    requests.filter((url) => !url.startsWith(server.url) || url.endsWith("/api/info")),
    [],
  );
  assert.ok((await shifted()) <= 0.01);
});

test("what a page says wins over the owner, and a site's style sheet over both", async (t) => {
  const chat: ChatDefinition = {
    ...OWNERS,
    logo: undefined as never,
    theme: "dark",
    conversations: true,
    feedback: true,
  };
  delete chat.logo;
  const { page } = await visit(t, browser, {
    turns: [],
    agent: { chat },
    body: [
      chatTag(300, `id="owners" style="display: block"`),
      chatTag(
        300,
        `id="pages" theme="light" corners="round" density="normal" accent="#ff0000" disclaimer="Ours" conversations="off" feedback="off"`,
        '<b slot="avatar">*</b><i slot="empty">Hi</i>',
      ),
      chatTag(300, `id="sites" class="site" accent="#ff0000"`),
    ].join(""),
    head: "<style>.site { --agent-chat-accent: #123456; --agent-chat-font: monospace }</style>",
  });
  await page.locator('[part="links"]').nth(2).waitFor({ state: "attached" });
  const look = (id: string) =>
    page.locator(`#${id}`).evaluate((it) => {
      const chat = it as HTMLElement & { theme: string; shadowRoot: ShadowRoot; own: object };
      const filled = chat.shadowRoot.querySelector(".chat") as HTMLElement;
      const { fontFamily } = getComputedStyle(filled);
      const probe = filled.appendChild(document.createElement("i"));
      probe.style.color = "var(--_accent)";
      const { color } = getComputedStyle(probe);
      probe.remove();
      return [
        chat.theme,
        it.getAttribute("corners"),
        color,
        fontFamily,
        chat.shadowRoot.querySelector(".disclaimer")?.textContent?.trim(),
      ];
    });
  assert.deepEqual(await look("owners"), [
    "dark",
    "sharp",
    "rgb(111, 220, 176)",
    "Georgia, serif",
    "Answers may be wrong.",
  ]);
  assert.deepEqual(await look("pages"), ["light", "round", "rgb(255, 0, 0)", "Georgia, serif", "Ours"]);
  assert.deepEqual(await look("sites"), ["dark", "sharp", "rgb(18, 52, 86)", "monospace", "Answers may be wrong."]);
  const keeps = (id: string) => page.evaluate<boolean>(`document.querySelector("#${id}").keepsAll`);
  assert.deepEqual([await keeps("owners"), await keeps("pages")], [true, false]);
  await script(page, `document.querySelector("#owners").conversations = false`);
  assert.equal(await keeps("owners"), false);
});

for (const [what, chat, light, dark] of [
  ["a colour for each theme", { accent: { light: "#0a7d4f", dark: "#6fdcb0" } }, "#0a7d4f", "#6fdcb0"],
  ["one theme and a colour", { theme: "light", accent: { light: "#0a7d4f", dark: "#6fdcb0" } }, "#0a7d4f", "#0a7d4f"],
  ["one theme", { theme: "dark" }, "#131316", "#131316"],
] as const) {
  test(`the browser's bars, and what is seen before the chat, are the owner's: ${what}`, async (t) => {
    const { page, greeting } = await openChat(t, browser, { turns: [], agent: { chat } });
    await greeting.waitFor();
    for (const [colorScheme, colour] of [
      ["light", light],
      ["dark", dark],
    ] as const) {
      await page.emulateMedia({ colorScheme });
      const [bars, scheme] = await page.evaluate(() => {
        const metas = [...document.querySelectorAll("meta")];
        const found = metas.find((it) => it.name === "theme-color" && matchMedia(it.media).matches);
        const probe = document.body.appendChild(document.createElement("i"));
        probe.style.color = "light-dark(rgb(1, 1, 1), rgb(2, 2, 2))";
        return [found?.content, getComputedStyle(probe).color === "rgb(1, 1, 1)" ? "light" : "dark"];
      });
      assert.deepEqual([bars, scheme], [colour, "theme" in chat ? chat.theme : colorScheme]);
    }
  });
}

test("the owner's theme is a default: what the reader has chosen stays theirs", async (t) => {
  const { page, greeting } = await openChat(t, browser, {
    turns: [],
    agent: { chat: { theme: "dark" } },
    browser: { colorScheme: "light" },
  });
  await greeting.waitFor();
  const theme = () => page.evaluate<string>(`document.querySelector("agent-chat").theme`);
  assert.equal(await theme(), "dark");
  await page.locator('[part="theme-toggle"]').click();
  assert.equal(await theme(), "light");
  await page.reload();
  await greeting.waitFor();
  assert.equal(await theme(), "light");
});

test("the button is the owner's from the first drawing, in the page's language; data-* of the page win", async (t) => {
  const { page } = await visit(t, browser, {
    agent: { chat: OWNERS },
    folder: temporaryProject(t, { "logo.svg": LOGO }),
    html: 'lang="de"',
    script: 'data-size="small"',
  });
  assert.equal(await shown(button(page)), "Fragen");
  const { x = 0, y = 0, height } = (await button(page).boundingBox()) ?? {};
  assert.deepEqual([x, y, height], [20, 20, 48]);
  assert.equal(await colour(button(page), "background-color"), "rgb(10, 125, 79)");
  const { requests } = watchAddresses(page);
  await page.reload({ waitUntil: "networkidle" });
  assert.deepEqual(
    requests.filter((url) => !url.endsWith("/widget.js") && !url.startsWith(new URL(page.url()).origin)),
    [],
  );
  await button(page).click();
  await panel(page).locator('.greeting [part="logo"]').waitFor();
  assert.equal(await shown(panel(page).locator(".agent")), "Acme-Hilfe");
});

test("a chat that the owner has open by itself opens once for a visitor, and never where it fills the screen", async (t) => {
  const agent = { chat: { button: { autoOpen: 1 } } };
  const { page, site } = await visit(t, browser, { agent });
  await panel(page).and(page.locator("[open]")).waitFor();
  await script(page, "sessionStorage.clear()");
  await page.goto(new URL("/next", site.url).href);
  await page.waitForLoadState("networkidle");
  assert.equal(await script(page, `document.querySelector("agent-chat-launcher").opened`), false);
  const phone = await visit(t, browser, { agent, browser: PHONE });
  await phone.page.waitForLoadState("networkidle");
  assert.equal(await script(phone.page, `document.querySelector("agent-chat-launcher").opened`), false);
});

for (const [when, attributes, hears] of [
  ["with its chat", "", ""],
  ["with its bubble", 'shortcut="Ctrl+Shift+K"', "Can we help?"],
  ["with its bubble, which says what the page has it say", 'preview="Hi!" size="small"', "Hi!"],
] as const) {
  test(`a launcher of another server than its script's takes the owner's looks ${when}`, async (t) => {
    const owners = {
      ...OWNERS,
      theme: "dark",
      button: { ...OWNERS.button, preview: { en: "Can we help?" }, previewAfter: 1 },
    };
    const other = await startServer(t, {
      turns: [],
      agent: { chat: owners as ChatDefinition },
      folder: temporaryProject(t, { "logo.svg": LOGO }),
    });
    const { page } = await visit(t, browser, {
      agent: { chat: { button: { label: "First" } } },
      body: `<agent-chat-launcher server="${other.url}" ${attributes}></agent-chat-launcher>`,
    });
    if (hears) assert.equal(await shown(preview(page)), hears);
    else {
      assert.equal(await button(page).innerText(), "");
      await button(page).click();
      await panel(page).locator('.greeting [part="logo"]').waitFor();
      await page.locator("agent-chat-launcher[label]").waitFor();
    }
    const names = ["label", "position", "size", "corners", "accent", "theme"];
    const has = await page
      .locator("agent-chat-launcher")
      .evaluate((it, names) => names.map((name) => it.getAttribute(name)), names);
    const [size, theme] = [hears === "Hi!" ? "small" : "large", hears ? "dark" : null];
    assert.deepEqual(has, ["Ask us", "top-start", size, "sharp", "light-dark(#0a7d4f,#6fdcb0)", theme]);
  });
}

test("a launcher of the npm package asks for the owner's looks with its bubble, and for nothing without one", async (t) => {
  const { url } = await startServer(t, { turns: [], agent: { chat: { button: { label: "Ask", preview: "Help?" } } } });
  const bundled = buildSync({ entryPoints: [join(DIST, "widget/browser.js")], bundle: true, write: false });
  const code = bundled.outputFiles[0]?.text.replaceAll("</script", "<\\/script");
  const html = sitePage(`<agent-chat-launcher server="${url}"></agent-chat-launcher><script>${code}</script>`);
  const site = await startSite(t, { "/": html });
  const { page } = await openPage(t, browser);
  const { requests } = watchAddresses(page);
  await page.goto(site.url, { waitUntil: "networkidle" });
  assert.deepEqual(requests, [`${site.url}/`]);
  await script(page, `document.querySelector("agent-chat-launcher").shortcut = "Ctrl+Shift+K"`);
  assert.equal(await shown(preview(page)), "Help?");
  assert.equal(await shown(button(page)), "Ask");
  assert.deepEqual(requests.slice(1), [`${url}/api/info`]);
});

const EVIL = "https://evil.example/x";

/** Values that our server never sends, and what the page keeps of them. */
const HOSTILE: [chat: object, complaint?: RegExp][] = [
  [
    {
      links: [
        { label: "x", url: "javascript:alert(1)" },
        { label: "y", url: "data:text/html,y" },
      ],
    },
  ],
  [{ logo: { light: EVIL, dark: "//evil.example/x" } }],
  [{ logo: { light: "../chat.svg", dark: "javascript:alert(1)" } }],
  [
    {
      accent: { light: "red;}*{background:url(https://evil.example/x)", dark: "#000000" },
      font: "x;}*{background:url(https://evil.example/x)",
    },
  ],
  [{ corners: "<img>", density: 5, theme: "evil", tools: {}, thinking: [] }],
  [{ title: "<img src=x onerror=alert(1)>", suggestions: [{ label: "<b>", prompt: "<i>" }] }],
  [{ button: { onclick: "document.title = 'evil'", style: "color: red", class: "x", label: "Ask" } }],
  [{ suggestions: "x", links: 5 }, /cannot read what the server says of the chat/],
];

for (const [chat, complaint] of HOSTILE) {
  test(`a server that sends something else harms no page: ${JSON.stringify(chat).slice(0, 80)}`, async (t) => {
    const { page, site, server, input } = await visit(t, browser, {
      body: chatTag(500),
      ...(complaint && { expectedComplaints: complaint }),
    });
    await page.route("**/api/info", async (route) => {
      const answer = await route.fetch({ url: `${server.url}/api/info` });
      await route.fulfill({ response: answer, json: { ...(await answer.json()), welcome: "Plain", chat } });
    });
    const { requests } = watchAddresses(page);
    await page.goto(site.url);
    const tag = '<agent-chat-launcher server="https://shop.example" shortcut="Ctrl+Shift+K"></agent-chat-launcher>';
    await page.evaluate((it) => document.body.insertAdjacentHTML("beforeend", it), tag);
    await input.waitFor();
    await page.waitForFunction(() => document.querySelector("agent-chat")?.shadowRoot?.querySelector(".welcome"));
    assert.deepEqual(
      requests.filter((url) => url.includes("evil")),
      [],
    );
    assert.equal(await page.locator('[part="logo"], [part="link"]').count(), 0);
    const look = await page
      .locator("agent-chat")
      .evaluate((it) => ["corners", "density", "theme"].map((name) => Reflect.get(it, name)));
    assert.deepEqual(look, ["round", "normal", "auto"]);
    if (!("button" in chat)) return;
    const launcher = page.locator("agent-chat-launcher[label]");
    await launcher.waitFor();
    const given = await launcher.evaluate((it) => it.getAttributeNames().sort());
    assert.deepEqual(given, ["label", "popover", "server", "shortcut"]);
  });
}

test("the page at / loads pictures of named hosts after a click, and only links to others", async (t) => {
  const {
    page,
    say: ask,
    replies,
  } = await openChat(t, browser, {
    turns: [
      [
        say(
          "![A](https://images.example.com/a.png) ![B](https://other.example.com/b.png) ![C](http://images.example.com/c.png)",
        ),
      ],
    ],
    env: { PARLEY_IMAGE_HOSTS: "images.example.com" },
  });
  await page.route("https://images.example.com/**", (route) =>
    route.fulfill({ contentType: "image/png", body: PIXEL }),
  );
  await ask("Pictures?");
  await replies.getByRole("button", { name: "images.example.com" }).click();
  const image = replies.locator("img.image");
  await image.waitFor();
  assert.equal(await image.evaluate((it) => (it as HTMLImageElement).naturalWidth), 1);
  assert.equal(await replies.locator("button.image").count(), 0);
  assert.equal(await replies.getByRole("link").count(), 2);
});

test("links stand at the foot of the start screen, without a sentence above them too", async (t) => {
  const links = [{ label: "Privacy", url: "/privacy" }];
  const { page } = await openChat(t, browser, { turns: [], agent: { chat: { links } } });
  const box = await page.locator('[part="links"]').boundingBox();
  assert.ok(box && box.y + box.height > 720 - 32, JSON.stringify(box));
});

test("signed out is a way in: greeting, a card with a button, and what was written is there after signing in", async (t) => {
  const authenticate = ({ token }: { token?: string | undefined }) => {
    if (token === undefined) throw new Unauthorized();
    return { id: token };
  };
  const { page, greeting, error, server } = await openChat(t, browser, {
    turns: [],
    authenticate,
    agent: { chat: { welcome: "Ask about your orders.", signIn: { url: "/login" } } },
    browser: { locale: "de" },
    expectedComplaints: /401/,
  });
  const way = page.locator('[part~="sign-in-button"]');
  await way.waitFor();
  assert.equal(await shown(greeting), "Ask about your orders.");
  assert.equal(await error.count(), 0);
  assert.equal(
    await shown(page.locator('[part="sign-in"]')),
    "Bitte melden Sie sich an, um hier zu schreiben.\n\nAnmelden",
  );
  assert.deepEqual(await way.evaluate((it) => [(it as HTMLAnchorElement).href, (it as HTMLAnchorElement).target]), [
    `${server.url}/login`,
    "_top",
  ]);
  assert.deepEqual(await axeFindings(page), []);
  await page.emulateMedia({ forcedColors: "active" });
  const card = page.locator('[part="sign-in"]');
  assert.equal(await colour(card, "border-block-start-color"), await colour(card, "color"));
  assert.deepEqual(await axeFindings(page), []);
  await page.locator("textarea").fill("Where is it?");
  await page.emulateMedia({ forcedColors: "none" });
  const fill = (part: string) => colour(page.locator(`[part~="${part}"]`), "background-color");
  assert.notEqual(await fill("send"), await fill("sign-in-button"), "one button is to be pressed");
  await script(page, `document.querySelector("agent-chat").userToken = "ada"`);
  await way.waitFor({ state: "detached" });
  assert.equal(await shown(greeting), "Ask about your orders.");
  assert.equal(await page.locator("textarea").inputValue(), "Where is it?");
});

test("a way in without an address tells the page, which signs the user in itself", async (t) => {
  const authenticate = () => {
    throw new Unauthorized();
  };
  const { page } = await visit(t, browser, {
    authenticate,
    agent: { chat: { signIn: { label: "Log in" } } },
    body: chatTag(500),
    expectedComplaints: /401/,
  });
  const way = page.getByRole("button", { name: "Log in" });
  await way.waitFor();
  await script(page, `addEventListener("agent-chat-login-required", () => { document.title = "Asked"; })`);
  await way.click();
  assert.equal(await page.title(), "Asked");
});

/** A logo that contains the brand's name; its dark page needs another colour. */
const wordmark = (fill: string) =>
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 132 32"><path fill="${fill}" d="M4 26 16 5l12 21zM38 9h90v14H38z"/></svg>`;

/** The tests' users by cookie or token. */
const USERS: Record<string, { id: string; name: string }> = {
  ada: { id: "ada", name: "Ada Lovelace" },
  bob: { id: "bob", name: "Bob" },
};

const usersOnly = ({ token = "", headers }: { token?: string | undefined; headers: IncomingHttpHeaders }) => {
  const user = USERS[token || (/user=(\w+)/.exec(headers.cookie ?? "")?.[1] ?? "")];
  if (!user) throw new Unauthorized();
  return user;
};

/** A page of the server that sets or removes the cookie and returns. */
const cookiePage = (cookie: string) => ({
  contentType: "text/html",
  body: `<script>document.cookie = "${cookie}; path=/"; location.replace("/")</script>`,
});

test("who writes while signed out hears why nothing is sent, comes back signed in to what they have written, is named, and signs out for good", async (t) => {
  const { page, input, greeting } = await openChat(t, browser, {
    turns: [],
    authenticate: usersOnly,
    agent: { chat: { suggestions: ["My order"], signIn: { url: "/login" }, signOut: { url: "/logout" } } },
    expectedComplaints: /401/,
  });
  await page.route("**/login", (route) => route.fulfill(cookiePage("user=ada")));
  await page.route("**/logout", (route) => route.fulfill(cookiePage("user=; max-age=0")));
  const way = page.getByRole("link", { name: "Sign in" });
  await way.waitFor();
  assert.equal(await page.locator('[part="suggestion"]').count(), 0);
  await input.fill("Where is it?");
  const heard = await listen(page);
  await input.press("Enter");
  await untilHeard(page, heard, "! Please sign in to write here.");
  await page.locator('[part~="sign-in-button"]:focus').waitFor();
  assert.equal(await input.inputValue(), "Where is it?");
  await page.keyboard.press("Enter");
  const line = page.locator('[part="signed-in"]');
  assert.match(await shown(line), /^Signed in as \u2068Ada Lovelace\u2069\s*Sign out$/);
  assert.match(await shown(greeting), /^Good \w+\.\s*How can I help\?$/);
  assert.equal(await input.inputValue(), "Where is it?");
  assert.equal(await page.locator('[part="suggestion"]').count(), 1);
  assert.deepEqual(await axeFindings(page), []);
  await page.getByRole("button", { name: "Sign out" }).click();
  await way.waitFor();
  assert.equal(await line.count(), 0);
  assert.equal(await input.inputValue(), "");
});

test("an agent without chat has the way in, too: the page hears of it, and of who signs out where the owner offers that", async (t) => {
  const plain = await visit(t, browser, { authenticate: usersOnly, body: chatTag(500), expectedComplaints: /401/ });
  const way = plain.page.getByRole("button", { name: "Sign in" });
  await way.waitFor();
  assert.match(await shown(plain.greeting), /^Good \w+\.\s*How can I help\?$/);
  assert.equal(await plain.error.count(), 0);
  await script(
    plain.page,
    `addEventListener("agent-chat-login-required", ({ target }) => { target.userToken = "bob"; })`,
  );
  await way.click();
  assert.equal(await shown(plain.page.locator('[part="signed-in"]')), "Signed in as \u2068Bob\u2069");
  assert.equal(await plain.page.locator('[part="sign-out"]').count(), 0);

  const { page } = await visit(t, browser, {
    authenticate: usersOnly,
    agent: { chat: { signOut: { label: "Leave" } } },
    body: chatTag(500),
    expectedComplaints: /401/,
  });
  await script(page, `document.querySelector("agent-chat").userToken = () => "ada"`);
  await script(
    page,
    `addEventListener("agent-chat-sign-out", ({ target }) => { document.title = "Left: " + target.userToken; })`,
  );
  await page.getByRole("button", { name: "Leave" }).click();
  await page.getByRole("button", { name: "Sign in" }).waitFor();
  await page.waitForFunction(() => document.title === "Left: undefined");
});

test("the page at / without an address to sign in says that this is done elsewhere, and loads again", async (t) => {
  const { page, error } = await openChat(t, browser, {
    turns: [],
    authenticate: usersOnly,
    expectedComplaints: /401/,
  });
  assert.equal(
    await shown(page.locator('[part="sign-in"]')),
    "Please sign in first, on the site that this chat belongs to. Then reload this page.\n\nReload the page",
  );
  assert.equal(await error.count(), 0);
  await page.context().addCookies([{ name: "user", value: "bob", url: page.url() }]);
  await page.getByRole("button", { name: "Reload the page" }).click();
  await page.locator('[part="signed-in"]').waitFor();
});

test("a name is text in one line whatever it is, and stays while the server cannot say who is there", async (t) => {
  const { page, site } = await visit(t, browser, {
    authenticate: usersOnly,
    body: chatTag(500),
    expectedComplaints: /401/,
  });
  let more: object = { user_name: "<img src=x onerror=alert(1)>" };
  await page.route("**/api/info", async (route) => {
    const answer = await route.fetch({ headers: { ...route.request().headers(), "x-user-token": "ada" } });
    await route.fulfill({ response: answer, json: { ...(await answer.json()), ...more } });
  });
  await page.goto(site.url);
  await script(page, `document.querySelector("agent-chat").userToken = "ada"`);
  const line = page.locator('[part="signed-in"]');
  assert.equal(await shown(line), "Signed in as \u2068<img src=x onerror=alert(1)>\u2069");
  more = { user_pending: true, user: undefined, user_name: undefined };
  const asked = page.waitForResponse("**/api/info");
  await script(page, `document.querySelector("agent-chat").userToken = "ada2"`);
  await asked;
  await script(page, `document.querySelector("agent-chat").updateComplete`);
  assert.equal(await line.count(), 1);
});

interface OwnersCase {
  locale: string;
  chat: ChatDefinition;
  /** The page's texts, starting with the name. */
  says: readonly string[];
  isForUsers?: true;
}

const OWNERS_PAGES: Record<string, OwnersCase> = {
  "with a wide logo and a dark brand colour": {
    locale: "en",
    chat: {
      title: "Norden Help",
      logo: { light: "light.svg", dark: "dark.svg" },
      accent: "#14213d",
      welcome: "Good to see you. What are you planning?",
      suggestions: ["Find a tent", { label: "My order", prompt: "Where is my order?" }],
      disclaimer: "Answers may be wrong. Check before you climb.",
      links: [
        { label: "Privacy", url: "/privacy" },
        { label: "Imprint", url: "/imprint" },
      ],
    },
    says: ["Norden Help", "Good to see you.", "Message Norden Help", "Find a tent", "Privacy"],
  },
  "in Arabic": {
    locale: "ar",
    chat: {
      title: { ar: "مساعدة أكمي", en: "Acme Help" },
      logo: "light.svg",
      accent: "#5b21b6",
      welcome: { ar: "مرحبا! كيف يمكننا المساعدة؟", en: "Hello!" },
      placeholder: { ar: "اسألنا" },
      suggestions: [{ label: { ar: "طلبي", en: "My order" }, prompt: "order" }],
      links: [{ label: { ar: "الخصوصية", en: "Privacy" }, url: "/privacy" }],
    },
    says: ["مساعدة أكمي", "مرحبا!", "اسألنا", "طلبي", "الخصوصية"],
  },
  "of a shop with sign-in": {
    locale: "de",
    isForUsers: true,
    chat: {
      title: "Kachel & Co.",
      accent: "#c2410c",
      welcome: { en: "Hello!", de: "Hallo! Fragen Sie uns zu Ihren Bestellungen." },
      suggestions: [{ label: { de: "Wo ist mein Paket?" }, prompt: "Paket?" }],
      links: [{ label: "Datenschutz", url: "/datenschutz" }],
      signIn: { label: { de: "Mit Kundenkonto anmelden" }, url: "/login" },
      signOut: { url: "/logout" },
    },
    says: ["Kachel & Co.", "Hallo!", "Nachricht an Kachel & Co.", "Wo ist mein Paket?", "Datenschutz"],
  },
};

/** Fails if something is cut off, overflows the chat, or is hard to read. */
async function looksRight(chat: Locator): Promise<void> {
  assert.deepEqual(await axeFindings(chat.page()), []);
  const wrong = await chat.evaluate((it) => {
    const root = it.shadowRoot as ShadowRoot;
    const { left, right, top, bottom } = it.getBoundingClientRect();
    const shown = root.querySelectorAll<HTMLElement>(
      ".agent, .logo, .welcome, .sign-in, .way-in, .suggestions, .disclaimer, .links, .signed-in, agent-chat-composer *",
    );
    return [...shown].flatMap((node) => {
      const box = node.getBoundingClientRect();
      if (box.width < 2) return [];
      const isIn = box.left >= left && box.right <= right && box.top >= top && box.bottom <= bottom;
      return isIn && node.scrollWidth <= node.clientWidth + 1 ? [] : [`${node.className || node.localName}`];
    });
  });
  assert.deepEqual(wrong, []);
}

for (const [name, { locale, chat: looks, says, isForUsers }] of Object.entries(OWNERS_PAGES)) {
  for (const colorScheme of ["light", "dark"] as const) {
    for (const place of ["the page at /", "a phone", "the panel"] as const) {
      test(`an owner's page ${name} is whole, ${colorScheme}, in ${place}`, async (t) => {
        const options = {
          turns: [],
          folder: temporaryProject(t, { "light.svg": wordmark("#14213d"), "dark.svg": wordmark("#e8edf7") }),
          agent: { chat: looks },
          browser: { ...(place === "a phone" && PHONE), locale, colorScheme },
          ...(isForUsers && { authenticate: usersOnly, expectedComplaints: /401/ }),
        };
        const isPanel = place === "the panel";
        const { page } = isPanel
          ? await visit(t, browser, {
              ...options,
              html: `lang="${locale}"`,
              head: "<style>:root { color-scheme: light dark }</style>",
            })
          : await openChat(t, browser, options);
        if (isPanel) await button(page).click();
        const chat = page.locator("agent-chat");
        const [title, hello = "", placeholder, label = "", link] = says;
        assert.equal((await shown(chat.locator(".welcome"))).startsWith(hello), true);
        if (isForUsers) {
          await chat.getByRole("link", { name: "Mit Kundenkonto anmelden" }).waitFor();
          await looksRight(chat);
          await page.evaluate(`document.querySelector("agent-chat-launcher, agent-chat").userToken = "ada"`);
          assert.match(
            await shown(chat.locator('[part="signed-in"]')),
            /^Angemeldet als \u2068Ada Lovelace\u2069\s*Abmelden$/,
          );
        }
        await chat.locator('[part="suggestion"]').getByText(label, { exact: true }).waitFor();
        assert.equal(await chat.getByRole("heading").first().textContent(), title);
        assert.equal(await chat.locator("textarea").getAttribute("placeholder"), placeholder);
        assert.equal(await shown(chat.locator('[part="link"]').first()), link);
        assert.equal(await chat.evaluate((it) => getComputedStyle(it).direction), locale === "ar" ? "rtl" : "ltr");
        if (looks.logo) await chat.locator(".greeting .wide").waitFor();
        await looksRight(chat);
      });
    }
  }
}
