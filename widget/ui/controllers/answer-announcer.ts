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
  /** The message as drawn so far. */
  readonly find: (id: string) => ParentNode | undefined;
  /** The message, once everything received of it is drawn. */
  readonly drawn: (id: string) => Promise<ParentNode | undefined>;
}

/** Announces an answer: its start, its tool calls, and at its end its text, or the new part of a continued one. */
export class AnswerAnnouncer {
  readonly #options: AnswerAnnouncerOptions;
  /** The answer that is streaming, as last seen. */
  #current: AssistantMessage | undefined;
  /** Announces the tool calls. Absent until one has changed; resolves to `undefined` if the code cannot be loaded. */
  #calls: Promise<CallAnnouncer | undefined> | undefined;
  /** Id of an answer that has ended without its text being spoken. */
  #unsaid: string | undefined;
  /** Sentences that the answer already had when it was continued. */
  #known: Promise<readonly string[]> = Promise.resolve([]);

  constructor(options: AnswerAnnouncerOptions) {
    this.#options = options;
  }

  /** Must be called with the last answer after every change of the messages. */
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

  /** `CallAnnouncer` is loaded with the code of the steps. Until then, changes of the calls wait in order. */
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
    // Other texts would interrupt the alert about the failure or the question.
    const isUnsaid = failure !== undefined || finishReason === "approval_required";
    this.#unsaid = isUnsaid ? id : undefined;
    // The last calls may have arrived together with the end of the answer.
    this.#followCalls(answer);
    const waiting = waitingCalls(answer);
    if (this.#calls) (await this.#calls)?.say();
    const said = (all: readonly Block[]) => all.flatMap((block) => kindOf(block).speak?.(block, strings) ?? []);
    if (waiting.length > 0) announcer.interrupt(said(waiting).join(" "));
    // The server has refused changed arguments, which the user can correct.
    const isRefused = failure?.code === "invalid_request" && waiting.length > 0;
    if (failure) announcer.interrupt(isRefused ? strings.checkValue : await explain(failure, strings));
    if (isUnsaid) return;
    // The note about this reason needs texts that are loaded separately, to be drawn and spoken.
    if (!(finishReason in endNotes)) await partTexts.load().catch(() => undefined);
    const others = said(blocks.slice(kept));
    if (suggestions.length > 0) others.push(`${strings.suggestions}: ${suggestions.join(", ")}`);
    await this.say(id, await known, others);
  }

  /** Speaks a message as drawn, without Markdown marks and the `known` sentences, and then `others`. */
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
    // Read now: the next drawing may already include new text.
    const known = sentencesIn(find(answer.id));
    return known.length > 0 ? known : sentencesIn(await drawn(answer.id));
  }
}

/** The sentences that differ from the known one at the same place. */
function* newSentences(texts: Iterable<string>, known: readonly string[]): Generator<string> {
  let place = 0;
  for (const text of texts) {
    for (const sentence of text.split(SENTENCE_END)) if (sentence !== known[place++]) yield sentence;
  }
}

/** Elements whose text is spoken separately. */
const BLOCKS = /^(P|H\d|LI|PRE|TR|DIV)$/;

/** From this number of lines or rows on, only the kind and size of a program or table are spoken. */
const LONG = 10;

/** The spoken texts of rendered answers, one per block: without Markdown marks and buttons. */
export function* spokenTexts(roots: Iterable<Node>, strings: Strings): Generator<string> {
  for (const root of roots) {
    // Lazily, block by block.
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

/** The text of a node, with NUL between blocks: no text contains that character. */
function textOf(node: Node, strings: Strings): string {
  if (node instanceof Text) return node.data;
  const { nodeName } = node;
  if (nodeName === "BUTTON") return "";
  // Cells of a row are separate words.
  const edge = BLOCKS.test(nodeName) ? "\0" : nodeName[0] === "T" ? " " : "";
  const text = summaryOf(node, strings) ?? [...node.childNodes].map((child) => textOf(child, strings)).join("");
  return edge + text + edge;
}

/** Spoken in place of a long program or table, or of a rendered formula. */
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
