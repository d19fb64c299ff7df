/** Messages and steps as elements: what is rendered again, and what state they keep. */

import "../support/dom.ts";
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { html, LitElement } from "lit";
import { conversationOf, EMPTY_DATA } from "../../widget/conversations/conversation.ts";
import type { AssistantMessage, Message, ToolBlock, UserMessage } from "../../widget/conversations/messages.ts";
import type { Client } from "../../widget/session/client.ts";
import type { ChatContext } from "../../widget/ui/context.ts";
import type { ToolRenderers } from "../../widget/ui/extensions.ts";
import { stopClock } from "../support/stopped-clock.ts";

const { locale: german } = await import("../../widget/i18n/locales/de.ts");
const { en, stringsOf } = await import("../../widget/i18n/strings.ts");
await import("../../widget/chat.ts");
await import("../../widget/ui/talk.ts");
const { MessageElement } = await import("../../widget/ui/message.ts");
const { PiecewiseDrawing, renderMessages } = await import("../../widget/ui/message-list.ts");
const { partsComplete } = await import("../../widget/ui/chat-part.ts");
const { loadElement } = await import("../../widget/ui/lazy-parts.ts");
const { blockKinds } = await import("../../widget/ui/blocks.ts");
await loadElement(blockKinds.tool.element);

const ACTIONS = new Proxy({}, { get: () => () => {} }) as ChatContext["actions"];

const CONTEXT: ChatContext = {
  strings: en,
  actions: ACTIONS,
  agent: "Ada",
  modes: { thinking: "auto", tools: "auto", feedback: false },
  theme: "light",
  nextTheme: "dark",
  images: "ask",
  headingLevel: 3,
  renderers: {},
  toolRenderers: {},
  messageActions: [],
  messageHeader: undefined,
};

const QUESTION: UserMessage = { role: "user", id: "q", text: "Hi", files: [] };

function answer(id: string, text: string, more: Partial<AssistantMessage> = {}): AssistantMessage {
  return { role: "assistant", id, status: "done", blocks: [{ type: "text", text }], ...more };
}

/** A conversation in a shadow root, as in `<agent-chat>`. */
class Conversation extends LitElement {
  static override properties = { messages: { attribute: false }, context: { attribute: false } };
  messages: readonly Message[] = [];
  context = CONTEXT;
  readonly #client = {
    session: { messages: this.messages, value: conversationOf(EMPTY_DATA), canEdit: () => false, waitingCalls: [] },
    library: { isNotKept: false },
  };
  readonly #drawing = new PiecewiseDrawing(this, () => this.messages);

  get root(): ShadowRoot {
    return this.renderRoot as ShadowRoot;
  }

  protected override async getUpdateComplete(): Promise<boolean> {
    const isComplete = await super.getUpdateComplete();
    await partsComplete(this.root);
    return isComplete;
  }

  protected override render() {
    this.#client.session.messages = this.messages;
    return html`${renderMessages(this.#client as unknown as Client, { context: this.context, firstDrawn: this.#drawing.first, editor: undefined, suggested: [] })}`;
  }
}
customElements.define("test-conversation", Conversation);

async function mount(messages: readonly Message[], context = CONTEXT): Promise<Conversation> {
  const list = Object.assign(new Conversation(), { context, messages });
  document.body.append(list);
  await list.updateComplete;
  return list;
}

async function show(list: Conversation, change: Partial<Conversation>): Promise<void> {
  Object.assign(list, change);
  await list.updateComplete;
}

const textOf = (list: Conversation, selector: string) =>
  list.root.querySelector(selector)?.textContent?.replace(/\s+/g, " ").trim();

function countUpdates(t: TestContext): () => number {
  let count = 0;
  const prototype = MessageElement.prototype as unknown as { update(changed: unknown): void };
  const { update } = prototype;
  prototype.update = function (this: unknown, changed: unknown) {
    count += 1;
    update.call(this, changed);
  };
  t.after(() => {
    prototype.update = update;
  });
  return () => count;
}

test("a token redraws one message of many", async (t) => {
  const earlier = Array.from({ length: 50 }, (_, index) => answer(`a${index}`, "Done"));
  const last = answer("last", "Hel", { status: "streaming" });
  const list = await mount([QUESTION, ...earlier, last]);
  const updates = countUpdates(t);
  await show(list, { messages: [QUESTION, ...earlier, answer("last", "Hello", { status: "streaming" })] });
  assert.equal(updates(), 1);
  assert.equal(textOf(list, "agent-chat-message:last-child .markdown"), "Hello");
});

test("a failure is said in the language of the moment", async () => {
  const failure = { code: "connection_lost", retryable: true } as const;
  const list = await mount([answer("m", "", { status: "failed", failure })]);
  // In a right-to-left language, its full stop would otherwise be at the beginning.
  assert.equal(textOf(list, '[part="error"] bdi'), en.connectionLost);
  await show(list, { context: { ...CONTEXT, strings: stringsOf(german) } });
  assert.equal(textOf(list, '[part="error"] p'), german.connectionLost);
});

test("a call that waits for approval is no empty answer: it is seen among many, says what it waits for, and nothing is asked again", async () => {
  const call = (callId: string, status: ToolBlock["status"]): ToolBlock => {
    return { type: "tool", callId, tool: "pay", arguments: "{}", status };
  };
  const blocks = [call("0", "completed"), call("1", "completed"), call("2", "completed"), call("3", "waiting")];
  const asking = answer("m", "", { blocks, finishReason: "approval_required" });
  const list = await mount([QUESTION, asking]);
  assert.equal(list.root.querySelector('[part="note"]'), null);
  const message = list.root.querySelector("agent-chat-message:last-child") as InstanceType<typeof MessageElement>;
  message.canRetry = true;
  await message.updateComplete;
  assert.equal(list.root.querySelector('[part="ask-again"]'), null);
  assert.equal(list.root.querySelectorAll(".step-row").length, 4, "no row folds the others away");
  assert.equal(textOf(list, '[data-status="waiting"] .aside'), en.toolWaiting);
  await customElements.whenDefined("agent-chat-approval");
  await list.updateComplete;
  assert.equal(textOf(list, ".step-row"), en.steps(3));
  assert.equal(textOf(list, '[part="approval"] .question'), "pay");
  assert.equal(list.root.querySelector('[part="approval"] dl'), null, "no room for values where there are none");
  await show(list, {
    messages: [QUESTION, answer("m", "Paid.", { blocks: [...blocks.slice(0, 3), call("3", "completed")] })],
  });
  assert.equal(list.root.querySelector('[part="approval"]'), null);
  assert.equal(textOf(list, ".step-row"), en.steps(4));
});

test("a person's choice for a thought outlives what the page wants and what still comes", async () => {
  const thinking = (text: string) =>
    answer("m", "", { status: "streaming", blocks: [{ type: "thinking", text, startedAt: 0 }] });
  const list = await mount([thinking("Hm")]);
  const row = list.root.querySelector<HTMLElement>('[part="thinking"] button');
  assert.equal(row?.ariaExpanded ?? row?.getAttribute("aria-expanded"), "true");
  row?.click();
  await show(list, { messages: [thinking("Hm, yes")] });
  assert.equal(row?.getAttribute("aria-expanded"), "false");
});

test("a call's row says how long it took, and an answer that takes the place of another has none of its open rows", async () => {
  const call: ToolBlock = {
    type: "tool",
    callId: "c",
    tool: "peek",
    arguments: "{}",
    status: "completed",
    durationMs: 1_234,
  };
  const list = await mount([QUESTION, answer("a", "", { blocks: [call] })]);
  assert.equal(textOf(list, ".aside"), "1.2s");
  list.root.querySelector<HTMLElement>('[part="tool"] button')?.click();
  await list.updateComplete;
  assert.equal(list.root.querySelectorAll('[aria-expanded="true"]').length, 1);
  await show(list, { messages: [QUESTION, answer("b", "", { blocks: [call] })] });
  assert.equal(list.root.querySelectorAll('[aria-expanded="true"]').length, 0);
});

test("a button that has copied says so for a moment, also when the chat is moved meanwhile", async (t) => {
  t.mock.method(navigator.clipboard, "write", async () => {});
  const clock = stopClock(t);
  const list = await mount([QUESTION, answer("a", "Copy me")]);
  const label = () => list.root.querySelector('.answer-actions [part="copy"]')?.getAttribute("aria-label");
  const copy = async () => {
    list.root.querySelector<HTMLElement>('.answer-actions [part="copy"]')?.click();
    while (label() !== en.copied) await list.updateComplete;
  };
  await copy();
  clock.tick(2_000);
  await list.updateComplete;
  assert.equal(label(), en.copyAnswer);
  await copy();
  document.body.append(list);
  // After a slow first rendering, the next one waits for a timer, which is set in a task.
  await new Promise(setImmediate);
  clock.tick(2_000);
  await list.updateComplete;
  assert.equal(label(), en.copyAnswer);
});

test("a long conversation appears from its end, which is not waited for longer, and all of it soon", async (t) => {
  t.mock.getter(document, "hidden", () => false);
  const exchanges = Array.from({ length: 30 }, (_, index) => [
    { ...QUESTION, id: `q${index}` },
    answer(`a${index}`, `${"word ".repeat(200)}\n\n`.repeat(6)),
  ]);
  const list = Object.assign(new Conversation(), { context: CONTEXT, messages: exchanges.flat() });
  document.body.append(list);
  const ids = () =>
    [...list.root.querySelectorAll("agent-chat-message")].map(
      (it) => (it as InstanceType<typeof MessageElement>).message.id,
    );
  // Waits without tasks, because the next part is rendered in one.
  while (ids().length === 0) await undefined;
  const first = ids();
  assert.ok(first.length < 10, `${first.length} messages at once`);
  assert.equal(first.at(-1), "a29");
  while (ids().length < 60) await new Promise((resolve) => setTimeout(resolve));
  assert.deepEqual(ids().slice(0, 2), ["q0", "a0"]);
});

const RUNNING: ToolBlock = {
  type: "tool",
  callId: "c1",
  tool: "weather",
  arguments: '{"city":"Ulm"}',
  status: "running",
};
const COMPLETED: ToolBlock = { ...RUNNING, status: "completed", output: "rain" };

async function withRenderers(
  toolRenderers: ToolRenderers,
  blocks: readonly ToolBlock[],
  tools: "auto" | "hidden" = "auto",
) {
  const modes = { ...CONTEXT.modes, tools };
  const list = await mount([QUESTION, answer("a", "", { blocks })], { ...CONTEXT, modes, toolRenderers });
  return {
    list,
    host: list as HTMLElement,
    slots: () => [...list.root.querySelectorAll("slot")].map(({ name }) => name),
  };
}

test("a page draws the calls of a tool itself, once for each state, and the drawing stays over other changes", async () => {
  const seen: string[] = [];
  const card = document.createElement("b");
  const weather: ToolRenderers[string] = ({ tool, arguments: input, output, status }) => {
    seen.push([tool, input, output ?? "-", status].join(" "));
    card.textContent = output ?? "…";
    return card;
  };
  const { list, host, slots } = await withRenderers({ weather }, [RUNNING]);
  assert.deepEqual([card.parentNode, [card.slot]], [host, slots()]);
  assert.equal(list.root.querySelector('[part="tool"]'), null);
  const other: ToolBlock = { ...RUNNING, callId: "c2", tool: "clock" };
  await show(list, { messages: [QUESTION, answer("a", "", { blocks: [RUNNING, other] })] });
  await show(list, { messages: [QUESTION, answer("a", "", { blocks: [COMPLETED, other] })] });
  assert.deepEqual(seen, ['weather {"city":"Ulm"} - running', 'weather {"city":"Ulm"} rain completed']);
  assert.deepEqual([host.children.length, card.textContent], [1, "rain"]);
  assert.equal(list.root.querySelectorAll('[part="tool"]').length, 1, "other tools have their row");
  await show(list, { messages: [] });
  assert.equal(host.children.length, 0);
});

test("a page draws the header of each message once, over tokens and other functions, and one that fails leaves the name", async (t) => {
  const warn = t.mock.method(console, "warn", () => undefined);
  const seen: string[] = [];
  const messageHeader: ChatContext["messageHeader"] = ({ messageId, role, name }) => {
    seen.push([messageId, role, name ?? "-"].join(" "));
    if (role === "user") return undefined;
    if (name === "Broken") throw new Error("no header");
    return Object.assign(document.createElement("b"), { textContent: role });
  };
  const note = (id: string, name?: string) => ({ role: "page", id, text: "Note", name, at: 0 }) as const;
  const messages = [QUESTION, answer("a", "Hel", { status: "streaming" })];
  const list = await mount(messages, { ...CONTEXT, messageHeader });
  const host = list as HTMLElement;
  const [header] = host.children;
  assert.deepEqual([header?.textContent, header?.slot], ["assistant", list.root.querySelector("slot")?.name]);
  await show(list, { messages: [QUESTION, answer("a", "Hello"), note("p", "Maria"), note("f", "Broken"), note("n")] });
  await show(list, { context: { ...CONTEXT, headingLevel: 4, messageHeader } });
  assert.deepEqual(seen, ["q user -", "a assistant -", "p page Maria", "f page Broken", "n page -"]);
  assert.equal(host.children[0], header);
  assert.deepEqual(
    [...host.children].map(({ textContent }) => textContent),
    ["assistant", "page", "page"],
  );
  const headings = [...list.root.querySelectorAll("[role=heading]")].map((it) => [
    it.part?.value ?? "",
    it.textContent,
  ]);
  const { you, agentSaid } = CONTEXT.strings;
  assert.deepEqual(
    headings.map(([, text]) => text),
    [you, agentSaid(CONTEXT.agent), agentSaid("Maria"), "Broken", agentSaid(CONTEXT.agent)],
  );
  assert.equal(list.root.querySelectorAll('[part="name"]').length, 1);
  assert.match(String(warn.mock.calls[0]?.arguments[0]), /messageHeader has failed/);
  await show(list, { context: CONTEXT });
  assert.deepEqual([host.children.length, list.root.querySelectorAll('[part="name"]').length], [0, 2]);
});

test("a drawing is in no group of steps, and is there where rows are hidden", async () => {
  const weather = () => document.createElement("b");
  const calls = ["c2", "c3", "c4", "c5"].map((callId) => ({ ...COMPLETED, callId, tool: "clock" }));
  const { list, slots } = await withRenderers({ weather }, [...calls.slice(0, 3), COMPLETED, ...calls.slice(3)]);
  assert.equal(list.root.querySelectorAll("agent-chat-steps").length, 2);
  assert.equal(slots().length, 1);
  const hidden = await withRenderers({ weather }, [COMPLETED, ...calls], "hidden");
  assert.deepEqual([hidden.list.root.querySelector("agent-chat-steps"), hidden.slots().length], [null, 1]);
});

const TABLE = { en: "Weather", de: "Wetter", fr: "Météo" };

/** A call, the language, `tools`, and the texts of its row and details; `#` stands for a chevron. */
const ROWS: [call: Partial<ToolBlock>, lang: string, tools: ChatContext["modes"]["tools"], row: string][] = [
  [{ title: "Weather in Ulm" }, "de", "auto", "Weather in Ulm #"],
  [{ title: TABLE }, "de", "auto", "Wetter #"],
  [{ title: TABLE }, "es", "auto", "Weather #"],
  [{ title: { fr: "Météo", it: "Meteo" } }, "de", "auto", "Météo #"],
  [{}, "en", "auto", "Get weather Ulm #"],
  [{ title: TABLE, status: "running" }, "fr", "auto", "Météo… #"],
  [{ title: TABLE }, "en", "titles", "Weather"],
  [{}, "en", "titles", "Get weather"],
  [{ title: "File", arguments: "{}", output: "" }, "en", "open", "File"],
  [{ title: "File", arguments: "{}", output: "Found" }, "en", "auto", "File #"],
];

test("a call's row is a sentence in the reader's language, and opens only where there is something to read", async () => {
  for (const [call, lang, tools, row] of ROWS) {
    const block: ToolBlock = { ...COMPLETED, tool: "get_weather", output: "{}", ...call };
    const context = { ...CONTEXT, strings: { ...en, lang }, modes: { ...CONTEXT.modes, tools } };
    const list = await mount([QUESTION, answer("a", "", { blocks: [block] })], context);
    const said = [".step-name", ".hint"].map((part) => textOf(list, part)).filter(Boolean);
    const opens = list.root.querySelector("button.step-row") ? ["#"] : [];
    assert.equal([...said, ...opens].join(" "), row);
  }
});

test("a group that the person has closed says what runs, and afterwards how many steps there were", async () => {
  const calls = ["c1", "c2", "c3"].map((callId): ToolBlock => ({ ...COMPLETED, callId }));
  const running: ToolBlock = { ...RUNNING, callId: "r", title: "Looking it up" };
  const list = await mount([QUESTION, answer("a", "", { status: "streaming", blocks: [...calls, running] })]);
  const row = list.root.querySelector<HTMLElement>(".step-row");
  assert.equal(textOf(list, ".step-name"), en.steps(4));
  row?.click();
  await list.updateComplete;
  assert.equal(textOf(list, ".step-name"), "Looking it up…");
  await show(list, { messages: [QUESTION, answer("a", "Done", { blocks: [...calls, COMPLETED] })] });
  assert.equal(textOf(list, ".step-name"), en.steps(4));
});

test("a call that waits for the person is seen where calls are hidden, and in a group that would fold", async () => {
  const waiting: ToolBlock = { ...RUNNING, callId: "w", status: "waiting" };
  const calls = ["c2", "c3"].map((callId) => ({ ...COMPLETED, callId }));
  await customElements.whenDefined("agent-chat-approval");
  const hidden = await withRenderers({}, [...calls, waiting], "hidden");
  const shown = ({ root }: Conversation) => [root.querySelector("agent-chat-steps"), root.querySelector("dd bdi")];
  assert.deepEqual([shown(hidden.list)[0], shown(hidden.list)[1]?.textContent], [null, "Ulm"]);
  const { list } = await withRenderers({}, [...calls, waiting]);
  assert.equal(shown(list)[1]?.textContent, "Ulm");
  await show(list, { messages: [QUESTION, answer("a", "", { blocks: [...calls, COMPLETED] })] });
  assert.equal(list.root.querySelector(".steps-body")?.hasAttribute("hidden"), true);
});

test("a drawing that fails, or that there is none of, leaves the row", async (t) => {
  const warn = t.mock.method(console, "warn", () => {});
  const failing = () => {
    throw new Error("no map");
  };
  const { list } = await withRenderers({ weather: failing, clock: () => undefined }, [
    COMPLETED,
    { ...COMPLETED, callId: "c2", tool: "clock" },
  ]);
  assert.equal(list.root.querySelectorAll('[part="tool"]').length, 2);
  assert.equal(warn.mock.callCount(), 1);
  assert.match(String(warn.mock.calls[0]?.arguments[0]), /toolRenderers\.weather/);
});
