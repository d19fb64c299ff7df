/**
 * Takes a screenshot of every state of the chat in every look, into `test/thorough/pictures/`, for people to look at.
 * Each is also tested: axe finds nothing, nothing is wider than the window, and the page has no complaints. `PICTURES`
 * is a pattern that selects by name: `PICTURES=failure` or `PICTURES='list-(light|dark)'`.
 */

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { after, type TestContext, test } from "node:test";
import type { BrowserContextOptions, Locator, Page } from "playwright-core";
import { Unauthorized } from "../../server/auth/authenticate.ts";
import { tool, toolResult } from "../../server/parley-agent.ts";
import { ApiError } from "../../server/protocol/errors.ts";
import type { AgentChat } from "../../widget/element/agent-chat.ts";
import { failOnComplaints, paste, press, untilTaken } from "../browser/chat-page.ts";
import { fillList } from "../browser/kept.ts";
import { axeFindings } from "../support/axe.ts";
import { launchBrowser, openPage } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { RED_PIXEL } from "../support/files.ts";
import { call, end, fail, hang, type Step, say, type Turn, think, wait } from "../support/scripted-provider.ts";
import { sitePage, startSite } from "../support/site.ts";
import { type ServerOptions, startServer } from "../support/start-server.ts";
import { temporaryProject } from "../support/temporary-project.ts";
import { broken, define, echo } from "../support/test-tools.ts";

const FOLDER = "test/thorough/pictures";
/** Every seventh, always the same ones: each state appears in one or two looks. `npm run test:rich` takes all. */
const EVERY = process.env.RICH === "all" ? 1 : 7;
const chosen = new RegExp(process.env.PICTURES ?? "");

const browser = await launchBrowser({ after });
mkdirSync(FOLDER, { recursive: true });

const phone = { hasTouch: true, isMobile: true };

/** Looks that users may have: window size, theme, language, zoom. */
const LOOKS: Record<string, BrowserContextOptions> = {
  light: { viewport: { width: 1280, height: 800 } },
  dark: { viewport: { width: 390, height: 844 }, colorScheme: "dark", ...phone },
  german: { viewport: { width: 1280, height: 800 }, locale: "de" },
  japanese: { viewport: { width: 390, height: 844 }, locale: "ja", ...phone },
  arabic: { viewport: { width: 1024, height: 768 }, locale: "ar" },
  zoom200: { viewport: { width: 640, height: 400 }, deviceScaleFactor: 2 },
  zoom400: { viewport: { width: 320, height: 256 }, deviceScaleFactor: 4 },
  forced: { viewport: { width: 1280, height: 800 }, forcedColors: "active" },
};

const ANSWER = `## What you can count on

**Bold**, *slanted*, ~~struck~~, \`inline\`, [a link](https://example.org) and H<sub>2</sub>O; press <kbd>Ctrl</kbd>.[^1]

1. First
   - [x] done
   - [ ] open
2. Second

| Bike | Price |
|:-----|------:|
| City, seven gears,<br>with a basket | 1,299.00 € |
| Mountain | 2,450.00 € |

\`\`\`ts
const total = bikes.reduce((sum, { price }) => sum + price, 0); // in cents, and this line is rather long
\`\`\`

The energy is \\(E = mc^2\\), it costs $5, and

\\[ \\int_0^1 x^2\\,dx = \\tfrac13 \\]

> [!NOTE]
> Prices are with tax.

> quoted

Best regards,
Bob

[^1]: On most keyboards.
`;

const WIDE = `| Model | Price | Weight | Frame | Brakes | Range | Colours | Notes |
|---|--:|--:|---|---|--:|---|---|
${Array.from({ length: 8 }, (_, at) => `| City ${at + 1} | ${at + 1},299.00 € | 1${at} kg | aluminium | hydraulic discs | ${at}0 km | black, white, red | For the daily way to work, with lights and a rack that carries 25 kg |`).join("\n")}`;

const LONG = Array.from(
  { length: 24 },
  (_, at) => `Paragraph ${at + 1}. ${"Some words of a long answer. ".repeat(6)}`,
).join("\n\n");

const LONG_NAME = "Which bicycle fits me, number 17 or number 12, if I ride to work every day?";

/** One answer, and one that continues while another conversation is shown. */
const LEFT = [[say("Hello.")], [wait(gate().opened)]];

const CJK = "**注意：**これは**「重要」**な点です。詳しくは https://example.com。次に進みます。";

const never = define(
  "search_orders",
  (_, { signal }) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason));
    }),
);

/** A call with progress and steps, one of which does not end. */
async function* research() {
  const event = (type: string, data: object) => ({ type, data });
  yield event("tool_call", { id: "c1", tool: "research_order", arguments: { order: "4711" } });
  yield event("tool_call", { id: "s1", tool: "search_web", arguments: { words: "Parcel tracking" }, parent: "c1" });
  yield event("tool_result", { id: "s1", output: "three pages" });
  yield event("tool_call", { id: "s2", tool: "open_page", arguments: { url: "https://example.org" }, parent: "c1" });
  yield event("tool_progress", { id: "s2", text: "Page 3 of 12" });
  yield event("tool_progress", {
    id: "c1",
    text: "Reading what the carrier says of the parcel and of the way that it goes",
  });
  await gate().opened;
}

const RESEARCHER = { model: undefined, run: research } as never;

/** A picture of that size, as base64. */
async function picture(width: number, height: number): Promise<string> {
  const page = await browser.newPage({ viewport: { width, height } });
  await page.setContent('<body style="background: linear-gradient(135deg, teal, gold)">');
  const bytes = await page.screenshot();
  await page.close();
  return bytes.toString("base64");
}

const CHARTS = [await picture(900, 300), await picture(160, 480)];

const renderChart = define("render_chart", () =>
  toolResult({ text: "drawn", images: CHARTS.map((data) => ({ mimeType: "image/png" as const, data })) }),
);

/** Locates parts of the chat by name, in any language. */
class Parts {
  readonly root: Page;
  constructor(root: Page) {
    this.root = root;
  }
  part(name: string): Locator {
    return this.root.locator(`[part~="${name}"]`);
  }
  async say(text: string): Promise<void> {
    await this.part("input").fill(text);
    await this.part("send").click();
  }
  async answered(count: number): Promise<void> {
    await this.part("assistant")
      .nth(count - 1)
      .and(this.root.locator('[aria-busy="false"]'))
      .waitFor();
  }
  async attach(): Promise<void> {
    await this.root.locator('input[type="file"]').setInputFiles([
      { name: "red.png", mimeType: "image/png", buffer: RED_PIXEL },
      { name: "offer.pdf", mimeType: "application/pdf", buffer: Buffer.from("%PDF-1.7\n") },
      { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("notes") },
      { name: "letter.txt", mimeType: "text/plain", buffer: Buffer.from("letter") },
    ]);
    await this.part("refusals").waitFor();
  }
  async openList(): Promise<void> {
    await this.part("conversation").first().waitFor({ state: "attached" });
    await this.part("list").or(this.part("conversation")).filter({ visible: true }).first().waitFor();
    // In a low window, the header is scrolled out of view.
    if (await this.part("list").isVisible()) await this.part("list").press("Enter");
    await this.part("conversation").first().waitFor();
  }
  /** Fills the list: one conversation is being answered while another one is shown. */
  async list(): Promise<void> {
    await this.say("Hello");
    await this.answered(1);
    await this.root.evaluate(fillList(14, 2));
    await this.part("reset").press("Enter");
    await this.say(LONG_NAME);
    await this.part("stop").waitFor();
    await this.openList();
    await this.root.locator('[data-id="filled1"]').press("Enter");
    await this.part("assistant").getByText("pears").waitFor();
    await this.openList();
  }
  /** Queues two messages during an answer. */
  async pend(): Promise<void> {
    await this.say("What is the status of order 4711?");
    await this.part("assistant").getByText("Let me").waitFor();
    await this.say("And of order 4712? It was to come with the other one, and my neighbour has seen a parcel.");
    await this.part("pending").waitFor();
    await untilTaken({ input: this.part("input") });
    await this.root.locator('input[type="file"]').setInputFiles({
      name: "photo-of-the-parcel.png",
      mimeType: "image/png",
      buffer: RED_PIXEL,
    });
    await this.part("remove").waitFor();
    await this.say("This is it");
    // In a low window they are behind a button.
    await this.part("pending").locator("li").nth(2).waitFor({ state: "attached" });
    // Even in a low window, the text field is fully visible.
    await this.root.waitForFunction(
      (it) => it && it.scrollHeight === it.clientHeight,
      await this.part("composer").elementHandle(),
    );
  }
}

interface State extends ServerOptions {
  path?: string;
  /** Files of the agent's folder. */
  files?: Readonly<Record<string, string>>;
  /** Attributes of the script tag: shows the launcher on a site instead of the page. */
  site?: string;
  /** Leads the opened page to the state of the screenshot. */
  reach(chat: Parts, page: Page): Promise<void>;
  complaints?: RegExp;
  /** Prepares the page before it is opened. */
  before?(page: Page): Promise<void>;
}

const talk = (turns: readonly Turn[], reach: State["reach"], options: Partial<State> = {}): State => ({
  turns,
  reach,
  ...options,
});

const failed = (error: ApiError, options: Partial<State> = {}): State =>
  talk(
    [[fail(error)]],
    async (chat) => {
      await chat.say("What is the status of order 4711?");
      await chat.part("error").waitFor();
    },
    options,
  );

const cancelOrder = tool({
  name: "cancel_order",
  description: "Cancels an order.",
  parameters: { type: "object" },
  needsApproval: true,
  danger: true,
  approvalText: ({ order_id: id }) => `Cancel order ${id} and refund 89.90 €?`,
  execute: () => "cancelled",
});

const writeToCustomer = tool({
  name: "write_to_customer",
  description: "Writes a message.",
  parameters: { type: "object" },
  needsApproval: true,
  editable: true,
  approvalText: () => "Write to the customer?",
  execute: () => "sent",
});

const ARGUMENTS: Record<string, object> = {
  cancel_order: { order_id: "4711", refundAmount: 89.9, notifyCustomer: true, address: { city: "Springfield" } },
  write_to_customer: {
    to: "ada@example.org",
    text: "Your order was cancelled, and the money is on its way. ".repeat(8),
  },
};

/** The agent asks for approval of calls of these tools. */
const asking = (
  tools: readonly string[],
  reach: State["reach"] = async () => {},
  options: Partial<State> = {},
): State =>
  talk(
    [[say("I have found the order."), ...tools.map((name) => call(name, name, ARGUMENTS[name]))]],
    async (chat, page) => {
      await chat.say("Cancel order 4711, please");
      await chat.part("approval").waitFor();
      await chat.answered(1);
      await reach(chat, page);
    },
    { agent: { tools: [cancelOrder, writeToCustomer] }, ...options },
  );

const OWNED: Partial<State> = {
  files: {
    "logo.svg": `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#0a7d4f"/><path fill="#fff" d="M9 23l7-15 7 15z"/></svg>`,
  },
  agent: {
    chat: {
      title: "Acme Help",
      welcome: "Hello! Ask about orders, bicycles and repairs.",
      accent: { light: "#0a7d4f", dark: "#6fdcb0" },
      logo: "logo.svg",
      suggestions: ["Where is my order?", "Book a repair"],
      disclaimer: "Answers may be wrong.",
      links: [
        { label: "Privacy", url: "/privacy" },
        { label: "Terms", url: "/terms" },
      ],
      signIn: { url: "/login" },
    },
  },
};

const source = (found: object): Step => ({ type: "source", source: found as never });

const DELIVERY = { title: "Delivery and returns", url: "https://acme.example/delivery" };
const SOURCED: Turn = [
  say("Within the city a delivery takes **two days**."),
  source({ ...DELIVERY, quote: "Orders that arrive before noon are delivered within two days in the city.", back: 0 }),
  say(" To the mountains it takes up to a week,"),
  source({ ...DELIVERY, quote: "Up to a week outside of the city.", back: 0 }),
  source({ title: "terms-of-delivery-2026.pdf", file: "terms-of-delivery-2026.pdf", back: 0 }),
  say(" and in winter longer.\n\n| City | Days |\n| --- | --: |\n| Lima | 2"),
  source({
    title: "Lima, a long title of a page that says how long everything takes in each of its districts",
    url: "https://lima.example/a",
    back: 0,
  }),
  say(" |\n| Cusco | 7 |\n"),
];

const STATES: Record<string, State> = {
  pasted: talk([], async (chat) => {
    const input = chat.part("input");
    await input.fill("Why does this fail?");
    await paste(input, "TypeError: cannot read what is not there\n".repeat(120));
    await chat.part("attachment").waitFor();
  }),
  start: talk([], (chat) => chat.part("empty").waitFor(), {
    agent: {
      chat: {
        welcome:
          "Welcome to **Acme**! Ask about orders, bicycles and repairs. We answer within the hour, see [our times](https://example.org/times).",
        suggestions: [
          "Where is my order?",
          "Which bicycle fits me, if I ride to work every day and at the weekend into the hills?",
          "Book a repair",
          "Opening times",
        ],
        disclaimer: "Answers may be wrong. [Privacy](https://example.org/privacy)",
      },
    },
  }),
  owner: talk(
    [[say("It left the warehouse this morning, and should be there **tomorrow before noon**.")]],
    async (chat) => {
      await chat.say("Where is my order?");
      await chat.answered(1);
    },
    OWNED,
  ),
  "signed-out": talk(
    [],
    async (chat) => {
      await chat.part("input").fill("Where is my order 4711?");
      await chat.part("sign-in").waitFor();
    },
    {
      ...OWNED,
      authenticate: () => {
        throw new Unauthorized();
      },
      complaints: /401/,
    },
  ),
  waiting: talk(
    [[wait(gate().opened)]],
    async (chat, page) => {
      await chat.say("What is the status of order 4711?");
      await chat.part("stop").waitFor();
      await page.clock.fastForward(12_000);
      await page.clock.runFor(2_000);
    },
    { before: (page) => page.clock.install() },
  ),
  answer: talk([[say(ANSWER)]], async (chat) => {
    await chat.say("Show me everything");
    await chat.answered(1);
  }),
  "answer-end": talk([[say(ANSWER)]], async (chat) => {
    await chat.say("Show me everything");
    await chat.answered(1);
    await chat.part("messages").evaluate((box) => box.scrollTo(0, box.scrollHeight));
  }),
  "wide-table": talk([[say(WIDE)]], async (chat) => {
    await chat.say("Compare them");
    await chat.answered(1);
    const table = chat.part("table");
    await chat.root.locator(".enlarge:not([hidden])").waitFor();
    await table.evaluate((box) => box.scrollBy(getComputedStyle(box).direction === "rtl" ? -150 : 150, 0));
    await table.evaluate((box) => box.scrollIntoView({ block: "end" }));
  }),
  "large-table": talk([[say(WIDE)]], async (chat) => {
    await chat.say("Compare them");
    await chat.answered(1);
    await chat.root.locator(".enlarge").click();
    await chat.part("lightbox").waitFor();
  }),
  long: talk([[say(LONG)]], async (chat) => {
    await chat.say("Tell me more");
    await chat.answered(1);
    await chat.part("jump").waitFor();
  }),
  sources: talk([SOURCED], async (chat) => {
    await chat.say("How long does a delivery take?");
    await chat.answered(1);
    await chat.part("sources").locator("summary").click();
  }),
  "source-card": talk([SOURCED], async (chat) => {
    await chat.say("How long does a delivery take?");
    await chat.answered(1);
    await chat.part("source-mark").first().click();
    await chat.root.locator('[part="source-card"]:popover-open').waitFor();
  }),
  chinese: talk([[say(CJK)]], async (chat) => {
    await chat.say("これは何ですか");
    await chat.answered(1);
  }),
  thinking: talk([[think("The customer asks for an order. ".repeat(12)), wait(gate().opened)]], async (chat) => {
    await chat.say("Where is it?");
    await chat.part("thinking").waitFor();
  }),
  tools: talk(
    [[call("a", "echo", { text: "ping" }), call("b", "broken"), call("c", "search_orders", { customer: 7 })]],
    async (chat) => {
      await chat.say("Look it up");
      await chat.part("tool").filter({ hasText: "search" }).waitFor();
    },
    { agent: { tools: [echo, broken, never] } },
  ),
  "tools-done": talk(
    [
      [think("Hm."), call("a", "echo", { text: "ping" }), call("b", "broken"), call("c", "echo", { text: "pong" })],
      [say("All is well.")],
    ],
    async (chat) => {
      await chat.say("Look it up");
      await chat.answered(1);
    },
    { agent: { tools: [echo, broken] } },
  ),
  steps: {
    agent: RESEARCHER,
    async reach(chat) {
      await chat.say("Where is order 4711?");
      await chat.root.getByText("Page 3 of 12").first().waitFor();
      await chat.part("steps").nth(1).locator(".step-row").first().click();
      await chat.root.getByText("Open page").last().waitFor();
    },
  },
  "tool-pictures": talk(
    [[call("a", "render_chart", { week: 31 })], [say("Two charts, of which one is high.")]],
    async (chat) => {
      await chat.say("Draw the week");
      await chat.answered(1);
      await chat.part("tool").locator("img").nth(1).waitFor();
    },
    { agent: { tools: [renderChart] } },
  ),
  "tool-pictures-among-steps": talk(
    [
      [
        call("a", "echo", { text: "ping" }),
        call("b", "render_chart", { week: 31 }),
        call("c", "echo", { text: "pong" }),
      ],
      [say("Two charts.")],
    ],
    async (chat) => {
      await chat.say("Draw the week");
      await chat.answered(1);
      await chat.part("steps").locator("img:visible").nth(1).waitFor();
    },
    { agent: { tools: [echo, renderChart] } },
  ),
  "panel-steps": {
    agent: RESEARCHER,
    site: 'data-tools="auto"',
    async reach(chat) {
      await chat.part("launcher").click();
      await chat.say("Where is order 4711?");
      await chat.root.getByText("Page 3 of 12").first().waitFor();
    },
  },
  approval: asking(["cancel_order"]),
  approvals: asking(["cancel_order", "write_to_customer"], async (chat) => {
    await press(chat.part("approve").first());
    await press(chat.part("decline").nth(1));
    await chat.part("input").fill("Not yet");
  }),
  "approval-changed": asking(["write_to_customer"], async (chat) => {
    await chat.part("edit-arguments").click();
    await chat.root.locator(".fields").waitFor();
  }),
  "approval-declining": asking(["cancel_order"], async (chat) => {
    await press(chat.part("decline"));
    await chat.part("cancel-decline").waitFor();
  }),
  "approval-expired": asking(
    ["cancel_order"],
    async (chat, page) => {
      await page.clock.fastForward(2 * 3_600_000);
      await chat.part("ask-me-again").waitFor();
    },
    { before: (page) => page.clock.install() },
  ),
  failure: failed(new ApiError("internal", "A fault in the server.")),
  limited: failed(new ApiError("rate_limited", "Too many messages.", { retryAfter: 20 })),
  "too-long": failed(new ApiError("context_too_long", "This conversation is too long for the model.")),
  offline: talk(
    [[say("An answer.")]],
    async (chat, page) => {
      await chat.say("A question");
      await chat.answered(1);
      await page.context().setOffline(true);
      await chat.say("And another question");
      await chat.part("queued").waitFor();
    },
    { complaints: /ERR_INTERNET_DISCONNECTED/ },
  ),
  stopped: talk([[say("The beginning of an answer, which"), hang]], async (chat) => {
    await chat.say("Tell me all");
    await chat.part("assistant").getByText("beginning").waitFor();
    await chat.part("stop").click();
    await chat.answered(1);
  }),
  feedback: talk(
    [[say("The earth is flat.")]],
    async (chat) => {
      await chat.say("What is the earth like?");
      await chat.answered(1);
      await press(chat.part("rate-down"));
      await chat.part("feedback-form").waitFor();
    },
    { agent: { chat: { feedback: true } } },
  ),
  cut: talk([[say("The beginning of an answer, which"), end("length")]], async (chat) => {
    await chat.say("Tell me all");
    await chat.answered(1);
  }),
  empty: talk([[]], async (chat) => {
    await chat.say("Say nothing");
    await chat.answered(1);
  }),
  files: talk([], async (chat) => {
    await chat.part("empty").waitFor();
    await chat.attach();
    await chat.part("input").fill("A draft\nof some\nlines");
  }),
  "own-message": talk([[say("I have read it.")]], async (chat) => {
    await chat.part("empty").waitFor();
    await chat.attach();
    await chat.say(Array.from({ length: 40 }, (_, at) => `Line ${at + 1} of what was pasted`).join("\n"));
    await chat.answered(1);
    await chat.part("messages").evaluate((box) => box.scrollTo(0, 0));
  }),
  editing: talk([[say("An answer.")]], async (chat) => {
    await chat.say("A question");
    await chat.answered(1);
    await chat.part("input").press("ArrowUp");
    await chat.part("editing").waitFor();
  }),
  undo: talk(
    [[say("An answer.")]],
    async (chat) => {
      await chat.say("A question");
      await chat.answered(1);
      await chat.part("reset").press("Enter");
      await chat.part("undo").waitFor();
    },
    { path: "/?embed=1" },
  ),
  key: talk([], (chat) => chat.part("key-form").waitFor(), { env: { PARLEY_CHAT_KEY: "c-1" }, complaints: /401/ }),
  corner: talk([], (chat) => chat.part("launcher").waitFor(), { site: 'data-label="Ask us"' }),
  panel: talk(
    [[say(ANSWER)]],
    async (chat) => {
      await chat.part("launcher").click();
      await chat.say("Show me everything");
      await chat.answered(1);
    },
    { site: "data-feedback" },
  ),
  "list-forget": talk(
    LEFT,
    async (chat) => {
      await chat.part("launcher").click();
      await chat.list();
      await chat.root.locator(".list-forget").click();
      await chat.part("conversation").nth(1).press("F2");
      await chat.root.locator(".list-name").waitFor();
    },
    { site: "data-conversations" },
  ),
  pending: talk([[say("Let me look that up."), wait(gate().opened)]], (chat) => chat.pend()),
  "pending-asking": talk([[say("Let me look that up."), hang]], async (chat) => {
    await chat.pend();
    await chat.part("stop").click();
    await chat.answered(1);
    await chat.root.reload();
    await chat.part("pending").waitFor();
  }),
  branches: talk(
    [..."abc", "d"].map((name) => [say(`Answer ${name}.`)]),
    async (chat, page) => {
      await chat.say("Which bicycle is the best for hills?");
      for (const count of [1, 2]) {
        await chat.answered(1);
        await chat.part("ask-again").click();
        await chat
          .part("alternatives")
          .getByText(`${count + 1}/${count + 1}`)
          .waitFor();
      }
      await chat.answered(1);
      await page.clock.fastForward(30 * 3_600_000);
      await chat.say("And for a family?");
      await chat.answered(2);
      for (const shown of ["2/3", "1/3"]) {
        await chat.part("previous").click();
        await chat.part("alternatives").getByText(shown).waitFor();
      }
      await chat.part("next").click();
      await chat.part("alternatives").getByText("2/3").waitFor();
      await chat.part("next").click();
      await chat.part("separator").last().waitFor();
      await chat.part("user").nth(1).getByText("And for a family?").click();
      await chat.part("edit").nth(1).click();
      await chat.part("editing").waitFor();
    },
    { before: (page) => page.clock.install() },
  ),
  list: talk(LEFT, async (chat) => {
    await chat.list();
    await chat.root.locator(".list-search").fill("number 1");
    await chat.part("conversation").nth(6).waitFor({ state: "hidden" });
    await chat.root.locator(".list-more").nth(1).click();
    await chat.part("rename").waitFor();
    assert.deepEqual(await chat.root.locator('.list-day, [title^="Number"] > span').evaluateAll(otherEdges), []);
  }),
  search: talk(LEFT, async (chat) => {
    await chat.list();
    await chat.root.locator(".list-search").fill("pears");
    await chat.root.locator(".list-row mark").first().waitFor();
  }),
  "search-nothing": talk(LEFT, async (chat) => {
    await chat.list();
    await chat.root.locator(".list-search").fill("bananas");
    await chat.part("end-search").waitFor();
  }),
  headers: talk([[say("It is on its way.")]], async (chat, page) => {
    await chat.say("Where is my order?");
    await chat.answered(1);
    await page.locator("agent-chat").evaluate(async (it) => {
      const element = it as AgentChat;
      element.messageHeader = ({ role, name }) => {
        if (role === "user") return undefined;
        const header = document.createElement("p");
        header.style.cssText = "display: flex; align-items: center; gap: 8px; margin: 0; font-weight: 600";
        const avatar = document.createElement("i");
        avatar.style.cssText = "inline-size: 28px; block-size: 28px; border-radius: 50%; background: teal";
        header.append(avatar, name ?? "Ada");
        return header;
      };
      await element.addMessage({ text: "Write to me if you want to change it.", name: "Maria" });
      element.suggest(["When will it arrive?", "Send it to another address", "Cancel it"]);
    });
    await chat.part("suggestion").first().waitFor();
  }),
};

/** Texts that do not begin at the same edge as the first one. */
function otherEdges(texts: Element[]): string[] {
  const [first = 0, ...others] = texts.map((it) => {
    const range = document.createRange();
    range.selectNodeContents(it);
    const { left, right } = range.getBoundingClientRect();
    return getComputedStyle(it.closest("nav") ?? it).direction === "rtl" ? right : left;
  });
  return others.flatMap((edge, at) => (Math.abs(edge - first) < 1 ? [] : [`${texts[at + 1]?.textContent}`]));
}

async function widths(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const wide = [document.documentElement, ...document.querySelectorAll("agent-chat")].flatMap((it) => {
      const box = it.shadowRoot?.querySelector('[part~="messages"]') ?? it;
      return box.scrollWidth > box.clientWidth
        ? [`${box.tagName} is ${box.scrollWidth} wide in ${box.clientWidth}`]
        : [];
    });
    return wide;
  });
}

async function take(t: TestContext, name: string, state: State, look: string): Promise<void> {
  const server = await startServer(t, { ...state, ...(state.files && { folder: temporaryProject(t, state.files) }) });
  const site =
    state.site === undefined
      ? undefined
      : await startSite(t, {
          // The chat takes its language and theme from the page.
          "/": sitePage(
            `<script src="${server.url}/widget.js" ${state.site}></script>`,
            '<meta name="color-scheme" content="light dark">',
            LOOKS[look]?.locale,
          ),
        });
  const { page, complaints } = await openPage(t, browser, { reducedMotion: "reduce", ...LOOKS[look] });
  failOnComplaints(t, complaints, state.complaints);
  await state.before?.(page);
  await page.goto(site?.url ?? server.url + (state.path ?? "/"));
  await state.reach(new Parts(page), page);
  await page.screenshot({ path: `${FOLDER}/${name}-${look}.png` });
  assert.deepEqual(await widths(page), []);
  if (look === "light" || look === "dark") assert.deepEqual(await axeFindings(page), []);
}

let number = 0;
for (const [name, state] of Object.entries(STATES)) {
  for (const look of Object.keys(LOOKS)) {
    if (number++ % EVERY !== 0 || !chosen.test(`${name}-${look}`)) continue;
    test(`${name}, ${look}`, (t) => take(t, name, state, look));
  }
}
