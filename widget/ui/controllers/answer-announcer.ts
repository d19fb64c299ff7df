import { type AssistantMessage, type Block, toolCalls, waitingCalls } from "../../conversations/messages.ts";
import { explain, partTexts } from "../../i18n/load-strings.ts";
import { endNotes, type Strings } from "../../i18n/strings.ts";
import { blockKinds, kindOf } from "../blocks.ts";
import type { ChatContext } from "../context.ts";
import { type Announcer, SENTENCE_END } from "./announcer.ts";
import type { CallAnnouncer } from "./call-announcer.ts";

export interface AnswerAnnouncerOptions {
  readonly announcer: Announcer;
  readonly context: () => ChatContext;
  /** The message as it is drawn. */
  readonly find: (id: string) => ParentNode | undefined;
  /** The same, once all that is known of it is drawn. */
  readonly drawn: (id: string) => Promise<ParentNode | undefined>;
}

/** Says what happens in an answer: that it begins, its tool calls, and at its end its text, or what is new in it. */
export class AnswerAnnouncer {
  readonly #options: AnswerAnnouncerOptions;
  /** The answer that is coming, as it was seen last. */
  #current: AssistantMessage | undefined;
  /** Speaks of its calls. Absent until one of them has changed; resolves without it where its code cannot be loaded. */
  #calls: Promise<CallAnnouncer | undefined> | undefined;
  /** Id of the answer that has ended without its text being said. */
  #unsaid: string | undefined;
  /** Sentences that were there when the answer went on. */
  #known: Promise<readonly string[]> = Promise.resolve([]);

  constructor(options: AnswerAnnouncerOptions) {
    this.#options = options;
  }

  /** To be called with the last answer after every change of the messages. */
  watch(answer?: AssistantMessage): void {
    if (answer?.status === "streaming") this.#follow(answer);
    else {
      if (answer && answer.id === this.#current?.id) void this.#end(answer);
      this.#leaveCalls();
      this.#current = undefined;
    }
  }

  #follow(answer: AssistantMessage): void {
    const { announcer, context } = this.#options;
    if (this.#current?.id === answer.id) this.#followCalls(answer);
    else {
      this.#leaveCalls();
      announcer.say(context().strings.answering);
      this.#known = answer.kept && answer.id !== this.#unsaid ? this.#sentencesOf(answer) : Promise.resolve([]);
    }
    this.#current = answer;
  }

  /** The code that speaks of calls comes with that of steps: until it is there, each change of them waits in turn. */
  #followCalls(answer: AssistantMessage): void {
    const before = this.#current;
    if (!before || toolCalls(answer).every((call) => before.blocks.includes(call))) return;
    const { announcer, context } = this.#options;
    this.#calls ??= blockKinds.tool.element.module.load().then(
      ({ StepsElement }) => new StepsElement.CallAnnouncer(announcer, context, before),
      () => undefined,
    );
    void this.#calls.then((calls) => calls?.watch(answer));
  }

  #leaveCalls(): void {
    void this.#calls?.then((calls) => calls?.leave());
    this.#calls = undefined;
  }

  async #end(answer: AssistantMessage): Promise<void> {
    const { announcer, context } = this.#options;
    const { failure, finishReason = "stop", id, blocks, kept, suggestions = [] } = answer;
    const { strings } = context();
    const known = this.#known;
    // What is asked was said aloud, which other texts would end.
    const isUnsaid = failure !== undefined || finishReason === "approval_required";
    this.#unsaid = isUnsaid ? id : undefined;
    // Its last calls may have come together with its end.
    this.#followCalls(answer);
    const waiting = waitingCalls(answer);
    if (this.#calls) (await this.#calls)?.say();
    const said = (all: readonly Block[]) => all.flatMap((block) => kindOf(block).speak?.(block, strings) ?? []);
    if (waiting.length > 0) announcer.interrupt(said(waiting).join(" "));
    // Changed arguments that were refused can be corrected.
    const isRefused = failure?.code === "invalid_request" && waiting.length > 0;
    if (failure) announcer.interrupt(isRefused ? strings.checkValue : await explain(failure, strings));
    if (isUnsaid) return;
    // Its note is drawn, and said, when there are words for it.
    if (!(finishReason in endNotes)) await partTexts.load().catch(() => undefined);
    const others = said(blocks.slice(kept));
    if (suggestions.length > 0) others.push(`${strings.suggestions}: ${suggestions.join(", ")}`);
    await this.say(id, await known, others);
  }

  /** Says a message as it is drawn, without the marks of Markdown, and `others` afterwards. */
  async say(id: string, known: readonly string[] = [], others: readonly string[] = []): Promise<void> {
    const { announcer, context, drawn } = this.#options;
    const { strings } = context();
    const message = await drawn(id);
    if (!message) return;
    announcer.sayAll(
      (function* () {
        yield* newSentences(spokenTexts(message.querySelectorAll(".name, .markdown, .note"), strings), known);
        yield* others;
      })(),
    );
  }

  async #sentencesOf(answer: AssistantMessage): Promise<readonly string[]> {
    const { find, drawn, context } = this.#options;
    const sentencesIn = (message: ParentNode | undefined) => {
      const texts = spokenTexts(message?.querySelectorAll(".markdown") ?? [], context().strings);
      return [...newSentences(texts, [])];
    };
    // More may have come of it when it is drawn next.
    const known = sentencesIn(find(answer.id));
    return known.length > 0 ? known : sentencesIn(await drawn(answer.id));
  }
}

/** The sentences that were not there before. */
function* newSentences(texts: Iterable<string>, known: readonly string[]): Generator<string> {
  let place = 0;
  for (const text of texts) {
    for (const sentence of text.split(SENTENCE_END)) if (sentence !== known[place++]) yield sentence;
  }
}

/** Elements of an answer whose text is spoken on its own. */
const BLOCKS = /^(P|H\d|LI|PRE|TR|DIV)$/;

/** A program or a table with as many lines or rows is spoken as its kind and its size. */
const LONG = 10;

/** The spoken texts of rendered answers, one per block: without Markdown marks and buttons. */
export function* spokenTexts(roots: Iterable<Node>, strings: Strings): Generator<string> {
  for (const root of roots) {
    // Block by block, as they are asked for.
    if (root instanceof Element && root.matches(".markdown, .section")) yield* spokenTexts(root.childNodes, strings);
    else
      yield* textOf(root, strings)
        .split("\0")
        .map(inOneRow)
        .filter((text) => text !== "");
  }
}

function inOneRow(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

/** With a character between blocks that no text has. */
function textOf(node: Node, strings: Strings): string {
  if (node instanceof Text) return node.data;
  const { nodeName } = node;
  if (nodeName === "BUTTON") return "";
  // Cells of a row are separate words.
  const edge = BLOCKS.test(nodeName) ? "\0" : nodeName[0] === "T" ? " " : "";
  const text = summaryOf(node, strings) ?? [...node.childNodes].map((child) => textOf(child, strings)).join("");
  return edge + text + edge;
}

/** What is spoken in place of a long program or table, or of a formula that was drawn. */
function summaryOf(node: Node, strings: Strings): string | undefined {
  if (!(node instanceof HTMLElement)) return undefined;
  if (node.matches(".rendered")) return node.dataset.source;
  if (!node.matches(".code, .table")) return undefined;
  const [code, table] = [node.querySelector("pre"), node.querySelector("table")];
  const label = node.querySelector(".code-language")?.textContent.trim() ?? "";
  const lines = code?.textContent.split("\n").length ?? 0;
  if (lines >= LONG) return strings.spokenCode(label === strings.code ? "" : label, lines);
  const rows = table ? table.rows.length - 1 : 0;
  return table && rows >= LONG ? strings.spokenTable(table.rows[0]?.cells.length ?? 0, rows) : undefined;
}
