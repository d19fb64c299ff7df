/** Opens blocks of the documents in a real browser, as pages of a site. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import type { TestContext } from "node:test";
import { build } from "esbuild";
import type { Browser, Page } from "playwright-core";
import type { AgentChat } from "../../widget/element/public-types.ts";
import { type ChatElement, chatIn, failOnComplaints } from "../browser/chat-page.ts";
import { axeFindings, OF_COLOURS } from "./axe.ts";
import { openPage } from "./browser.ts";
import { REPOSITORY } from "./command.ts";
import { RED_PIXEL } from "./files.ts";
import type { CodeBlock } from "./markdown-file.ts";
import { call, say, type Turn } from "./scripted-provider.ts";
import { sitePage, startSite } from "./site.ts";
import { startServer } from "./start-server.ts";
import { define } from "./test-tools.ts";

export interface DocumentedPage {
  /** Content of the body. */
  body: string;
  head?: string;
  /** Content-Security-Policy of the page. */
  policy?: string;
  /** Other files of the site, by path. */
  files?: Readonly<Record<string, string>>;
  /** The turns of the scripted model. */
  turns?: readonly Turn[];
}

export interface OpenedPage extends ChatElement {
  page: Page;
  /** What the page wrote to the console. */
  printed: string[];
}

const order = define("show_order", () => ({ order: "1007", state: "on its way" }));
const weather = define("get_weather", () => ({ city: "Paris", celsius: 21 }));

/** Opens a page with that content. If the content has the documents' example key, the server requires it. */
export async function openDocumented(t: TestContext, browser: Browser, options: DocumentedPage): Promise<OpenedPage> {
  const { body, head = "", policy = "", files = {}, turns = [[say("Hi.")]] } = options;
  const env: Record<string, string> = body.includes("YOUR_WIDGET_KEY") ? { PARLEY_WIDGET_KEY: "YOUR_WIDGET_KEY" } : {};
  const server = await startServer(t, { turns, env, agent: { tools: [weather, order] } });
  const onServer = (text: string) =>
    text.replaceAll(/(http|ws)s(:\/\/)chat\.example\.com/g, `$1$2127.0.0.1:${server.port}`);
  const headers: Record<string, string> = policy ? { "content-security-policy": onServer(policy) } : {};
  const site = await startSite(t, { "/": { html: sitePage(onServer(body), head), headers } });
  const { page, complaints } = await openPage(t, browser, { reducedMotion: "reduce" });
  failOnComplaints(t, complaints);
  const printed: string[] = [];
  page.on("console", (message) => printed.push(message.text()));
  for (const [path, content] of Object.entries(files)) {
    const contentType = path.endsWith(".svg") ? "image/svg+xml" : "text/javascript";
    await page.route(`${site.url}${path}`, (route) => route.fulfill({ contentType, body: content }));
  }
  await page.goto(site.url);
  return { page, printed, ...chatIn(page.locator("agent-chat")) };
}

const TAGS = `<script src="https://chat.example.com/widget.js" async></script>
<agent-chat server="https://chat.example.com" style="height: 500px"></agent-chat>`;

/** Opens a page from its HTML: opens the chat by button or launcher if needed, and checks that the agent answers. */
export async function opensInABrowser(t: TestContext, browser: Browser, { text }: CodeBlock): Promise<void> {
  const opened = await openDocumented(t, browser, { body: text, files: { "/logo.svg": LOGO } });
  const { page } = opened;
  const chat = text.includes("<iframe") ? chatIn(page.frameLocator("iframe").locator("agent-chat")) : opened;
  if (text.includes('id="ask"')) {
    await page.getByRole("button", { name: "Where is my order?" }).click();
    await chat.replies.getByText("Hi.").waitFor();
    return;
  }
  if (!text.includes("<agent-chat") && !text.includes("<iframe")) {
    await page.locator('[part="launcher"]').click();
  }
  await chat.ask("Hello", "Hi.");
  for (const slotted of await page.locator("agent-chat > [slot]").all()) assert.ok(await slotted.isVisible());
  if (text.includes("exportTranscript")) {
    const [download] = await Promise.all([page.waitForEvent("download"), page.locator("#save").click()]);
    assert.match(readFileSync(await download.path(), "utf8"), /Hello.*Hi\./s);
  }
}

const LOGO = '<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"/>';

/** Checks that a documented Content-Security-Policy allows all that the chat needs. */
export async function isEnoughOfAPolicy(t: TestContext, browser: Browser, { text }: CodeBlock): Promise<void> {
  const policy = `default-src 'none'; ${text.replaceAll("\n", " ")}`;
  const answer = `**Hi** ![dot](data:image/png;base64,${RED_PIXEL.toString("base64")})\n\n\`\`\`js\nlet a;\n\`\`\``;
  const {
    say: type,
    answer: shown,
    files,
    replies,
  } = await openDocumented(t, browser, {
    body: TAGS.replace(' style="height: 500px"', ""),
    policy,
    turns: [[say(answer)]],
  });
  await files.setInputFiles([{ name: "red.png", mimeType: "image/png", buffer: RED_PIXEL }]);
  await type("Hello");
  await shown.locator("pre code span").first().waitFor();
  await replies.locator("img").waitFor();
}

const AVATAR = { "/ada.svg": '<svg xmlns="http://www.w3.org/2000/svg"/>' };

/** Checks a style sheet of the page: it changes what is above answers, or the background of header or messages. */
export async function coloursTheChat(t: TestContext, browser: Browser, { text }: CodeBlock): Promise<void> {
  const { page, ask } = await openDocumented(t, browser, {
    body: TAGS,
    head: `<style>${text}</style>`,
    files: AVATAR,
  });
  await ask("Hello", "Hi.");
  if (text.includes("::before")) {
    const header = await page.locator('[part~="assistant"]').evaluate((it) => {
      const { content, lineHeight } = getComputedStyle(it, "::before");
      return [content, lineHeight];
    });
    assert.deepEqual(header, ['"Ada"', "28px"]);
    return;
  }
  const [where, colour] = text.includes("::part(header)")
    ? ['[part="header"]', "rgb(237, 233, 254)"]
    : ['[part~="user"] .bubble', "rgb(245, 243, 255)"];
  assert.equal(await page.locator(where).evaluate((it) => getComputedStyle(it).backgroundColor), colour);
}

/** Checks that the chat has these colours and that all text is readable, in light and dark mode. */
export async function isReadable(t: TestContext, browser: Browser, { text }: CodeBlock): Promise<void> {
  const { page, ask } = await openDocumented(t, browser, {
    body: TAGS,
    head: `<style>:root { color-scheme: light dark }${text}</style>`,
  });
  await ask("Hello", "Hi.");
  const surface = /surface: light-dark\((#\w+), (#\w+)\)/.exec(text) ?? [];
  for (const [index, colorScheme] of (["light", "dark"] as const).entries()) {
    await page.emulateMedia({ colorScheme });
    const bubble = page.locator('[part~="user"] .bubble');
    const wanted = await page.evaluate(
      (colour) => {
        document.head.style.color = colour;
        return getComputedStyle(document.head).color;
      },
      surface[index + 1] ?? "",
    );
    assert.equal(await bubble.evaluate((it) => getComputedStyle(it).backgroundColor), wanted);
    assert.deepEqual(await axeFindings(page, OF_COLOURS), []);
  }
}

/** Bundles the package's element with code splitting, and opens it on a page without our script tag. */
export async function isBundled(t: TestContext, browser: Browser, { text }: CodeBlock): Promise<void> {
  const { outputFiles } = await build({
    stdin: { contents: text, resolveDir: REPOSITORY },
    bundle: true,
    splitting: true,
    format: "esm",
    outdir: "/bundle",
    write: false,
  });
  const { ask } = await openDocumented(t, browser, {
    body: `<script type="module" src="/bundle/stdin.js"></script><agent-chat server="https://chat.example.com"></agent-chat>`,
    files: Object.fromEntries(outputFiles.map(({ path, text: script }) => [path, script])),
  });
  await ask("Hello", "Hi.");
}

/** Scripts of a page with a chat, keyed by a text that they contain: the model's turns, and what the user then sees. */
const SCRIPTS: Record<string, Omit<DocumentedPage, "body"> & { check(opened: OpenedPage): Promise<void> }> = {
  "setDraft(": {
    async check({ input, page }) {
      await page.waitForFunction(() => document.activeElement?.localName === "agent-chat");
      assert.equal(await input.inputValue(), "I would like to return my order 4711.");
    },
  },
  "addMessage(": {
    async check({ ask, page }) {
      await page.evaluate("returnIsBooked()");
      await page.getByRole("article", { name: "Maria" }).getByText("Write to me").waitFor();
      await ask("Hello", "Hi.");
    },
  },
  ".messageHeader =": {
    files: AVATAR,
    async check({ ask, page }) {
      await ask("Hello", "Hi.");
      await page.locator("agent-chat > .speaker", { hasText: /^Ada$/ }).waitFor({ state: "attached" });
      assert.equal(await page.locator("agent-chat > .speaker").count(), 1);
    },
  },
  "suggest(": {
    async check({ ask, page }) {
      await ask("Hello", "Hi.");
      await page.getByRole("button", { name: "And tomorrow?" }).waitFor();
    },
  },
  ".strings =": {
    async check({ page }) {
      await page.getByText("What would you like to know about bicycles?").waitFor();
      await page.getByPlaceholder("Ask Acme Support").waitFor();
    },
  },
  ".userToken =": {
    files: { "/chat-token": "token-of-ada" },
    async check({ ask, page }) {
      const given = await page.locator("agent-chat").evaluate(async (element) => {
        const { userToken, metadata } = element as AgentChat;
        return [typeof userToken === "function" && (await userToken()), metadata];
      });
      assert.deepEqual(given, ["token-of-ada", { page: "/" }]);
      await ask("Hello", "Hi.");
    },
  },
  "agent-chat-feedback": {
    async check({ ask, page }) {
      await page.locator("agent-chat").evaluate((chat) => chat.setAttribute("feedback", ""));
      await ask("Hello", "Hi.");
      await page.route("**/feedback", (route) => route.fulfill({ body: "" }));
      const [request] = await Promise.all([
        page.waitForRequest("**/feedback"),
        page.locator('[part="rate-up"]').click(),
      ]);
      const { rating, answer } = request.postDataJSON();
      assert.deepEqual([rating, answer], ["up", "Hi."]);
    },
  },
  ".renderers =": {
    turns: [[say("```csv\na,b\nc,d\n```\n\n```mermaid\ngraph\n```\n\n$$\nx^2\n$$\n\nEnd.\n")]],
    files: {
      "/diagrams.js":
        "export const draw = (text, { theme }) => Object.assign(document.createElement('figure'), { textContent: theme + text });",
    },
    async check({ say: type, answered, answer }) {
      await type("Show it");
      await answered();
      assert.deepEqual(await answer.getByRole("cell").allTextContents(), ["a", "b", "c", "d"]);
      await answer.locator("figure").getByText("lightgraph").waitFor();
      await answer.locator("code").getByText("x^2").waitFor();
    },
  },
  show_order: {
    turns: [[call("c1", "show_order", { order: "1007" })], [say("Here it is.")], [say("Where to?")]],
    async check({ ask, page, replies }) {
      await ask("Where is my order?", "Here it is.");
      await page.getByText("Order 1007: on its way").waitFor();
      await page.getByRole("button", { name: "Send it elsewhere" }).click();
      await replies.getByText("Where to?").waitFor();
    },
  },
  get_weather: {
    turns: [[call("c1", "get_weather", { city: "Paris" })], [say("Warm.")]],
    async check({ say: type, page, tools }) {
      await type("Weather?");
      await page.locator("agent-chat > p.weather").getByText("Paris: 21 °C").waitFor();
      assert.equal(await tools.count(), 0);
    },
  },
  "{ decide }": { check: paysAfterApproval },
  ".messageActions =": {
    turns: [[say("All *is* well.")]],
    async check({ page, ask }) {
      await ask("Hi", "All is well.");
      const download = page.waitForEvent("download");
      await page.getByRole("button", { name: "Save the answer" }).click();
      assert.equal((await download).suggestedFilename(), "answer.md");
    },
  },
  ".composerActions =": {
    async check({ page, input }) {
      await page.getByRole("button", { name: "Insert the date" }).click();
      assert.match(await input.inputValue(), /\d/);
    },
  },
};

/** Runs a script that follows the chat on a page. */
export async function runsInThePage(t: TestContext, browser: Browser, { text }: CodeBlock): Promise<void> {
  const [, script] = Object.entries(SCRIPTS).find(([has]) => text.includes(has)) ?? [];
  assert.ok(script, "SCRIPTS does not say what the script does");
  const { check, ...page } = script;
  const opened = await openDocumented(t, browser, { ...page, body: `${TAGS}<script>${text}</script>` });
  await opened.input.waitFor();
  await check(opened);
}

/** The server sends no such calls yet: the page's socket is replaced by one that does. */
async function paysAfterApproval({ page, say: type, replies }: OpenedPage): Promise<void> {
  const done = { type: "done", data: "", state: {}, finish_reason: "approval_required" };
  const waiting = { id: "1", tool: "pay", arguments: "{}", text: "Pay 5 €?", expires_at: "2026-01-01T00:00:00Z" };
  await page.routeWebSocket(/\/ws\/chat/, (socket) => {
    socket.onMessage((message) => {
      const { approvals } = JSON.parse(String(message));
      const events = approvals?.[0].approved
        ? [{ ...done, data: "Paid.", finish_reason: "stop" }]
        : [{ type: "tool_approval", data: waiting }, done];
      if (approvals) events.unshift({ type: "token", data: "Paid." } as (typeof events)[0]);
      for (const [index, event] of events.entries()) socket.send(JSON.stringify({ ...event, id: index + 1 }));
    });
  });
  await page.reload();
  await type("Pay");
  await page.getByRole("button", { name: "Pay", exact: true }).click();
  await replies.getByText("Paid.").waitFor();
}
