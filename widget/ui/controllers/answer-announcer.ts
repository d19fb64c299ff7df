import { failureText, type Strings, toolName, toolStatusText } from "../../i18n/strings.ts";
import {
  type AssistantMessage,
  questionsOf,
  type ToolBlock,
  type ToolStatus,
  toolCalls,
} from "../../session/messages.ts";
import { kindOf } from "../blocks.ts";
import type { ChatContext } from "../context.ts";
import { type Announcer, SENTENCE_END } from "./announcer.ts";

export interface AnswerAnnouncerOptions {
  readonly announcer: Announcer;
  readonly context: () => ChatContext;
  /** Resolves to the message as it is drawn, once it is. */
  readonly drawn: (id: string) => Promise<ParentNode | undefined>;
}

/** Calls that begin within this time of each other, in milliseconds, are spoken of together. */
const TOGETHER = 100;

/** Says what happens in an answer: that it begins, its tool calls, and at its end its text, or what is new in it. */
export class AnswerAnnouncer {
  readonly #options: AnswerAnnouncerOptions;
  /** The answer that is coming, as it was seen last. */
  #current: AssistantMessage | undefined;
  /** What was last said of its calls, by their ids. */
  readonly #said = new Map<string, ToolStatus>();
  /** Id of the answer that has ended without its text being said. */
  #unsaid: string | undefined;
  /** Sentences that were there when the answer went on. */
  #known: Promise<readonly string[]> = Promise.resolve([]);
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: AnswerAnnouncerOptions) {
    this.#options = options;
  }

  /** To be called with the last answer after every change of the messages. */
  watch(answer?: AssistantMessage): void {
    if (answer?.status === "streaming") this.#follow(answer);
    else {
      const isEnd = answer !== undefined && answer.id === this.#current?.id;
      // Its last calls may have come together with its end.
      if (isEnd) this.#current = answer;
      this.#sayCalls();
      if (isEnd) void this.#end(answer);
      this.#current = undefined;
    }
  }

  #follow(answer: AssistantMessage): void {
    const { announcer, context } = this.#options;
    const before = this.#current;
    if (before?.id !== answer.id) {
      this.#current = answer;
      this.#said.clear();
      for (const { callId, status } of toolCalls(answer)) this.#said.set(callId, status);
      announcer.say(context().strings.answering);
      this.#known = answer.kept && answer.id !== this.#unsaid ? this.#sentencesOf(answer) : Promise.resolve([]);
      return;
    }
    const [known, calls] = [toolCalls(before), toolCalls(answer)];
    // The next turn of the model: what was before is spoken of by itself.
    if (calls.length > known.length && !known.some(isOpen)) this.#sayCalls();
    this.#current = answer;
    if (calls.some(({ callId, status }) => this.#said.get(callId) !== status)) {
      this.#timer ??= setTimeout(() => this.#sayCalls(), TOGETHER);
    }
  }

  /** Says which calls have begun and, once none of them runs any more, how they have ended. */
  #sayCalls(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (!this.#current) return;
    const { announcer, context } = this.#options;
    const { strings, modes } = context();
    const calls = toolCalls(this.#current).filter(({ status }) => modes.tools !== "hidden" || status === "waiting");
    const isOver = !calls.some(isRunning);
    const changed = calls.filter(({ callId, status }) => this.#said.get(callId) !== status);
    const begun = changed.filter(({ callId, status }) => status !== "waiting" && !this.#said.has(callId));
    const ended = changed.filter(({ status }) => isOver && (status === "completed" || status === "failed"));
    const named = changed.filter(({ status }) => status === "stopped");
    const asked = changed.filter(({ status }) => status === "waiting");
    const said = (call: ToolBlock) => `${toolName(call, strings)}: ${toolStatusText(call.status, strings)}`;
    const failed = ended.filter(({ status }) => status === "failed").length;
    const texts = [
      ...inOne(
        begun,
        (call) => (call.title ? toolName(call, strings) : strings.toolStarted(toolName(call, strings))),
        strings.toolsStarted,
      ),
      ...inOne(ended, said, (count) =>
        count > failed ? strings.toolsEnded(count - failed, failed) : strings.stepsFailed(failed),
      ),
      ...named.map(said),
    ];
    if (texts.length > 0) announcer.say(...texts);
    if (asked.length > 0) announcer.interrupt(questionsOf(asked));
    for (const { callId } of begun) this.#said.set(callId, "running");
    for (const { callId, status } of [...ended, ...named, ...asked]) this.#said.set(callId, status);
  }

  async #end(answer: AssistantMessage): Promise<void> {
    const { announcer, context } = this.#options;
    const { failure, finishReason, id } = answer;
    const { strings } = context();
    // Changed arguments that were refused can be corrected.
    const isRefused = failure?.code === "invalid_request" && toolCalls(answer).some(isOpen);
    if (failure) announcer.interrupt(isRefused ? strings.checkValue : failureText(failure, strings));
    // What is asked was said aloud, which other texts would end.
    this.#unsaid = failure || finishReason === "approval_required" ? id : undefined;
    if (this.#unsaid) return;
    const { blocks, kept, suggestions = [] } = answer;
    const others = blocks.slice(kept).flatMap((block) => kindOf(block).speak?.(block, strings) ?? []);
    if (suggestions.length > 0) others.push(`${strings.suggestions}: ${suggestions.join(", ")}`);
    await this.say(id, await this.#known, others);
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
    const message = await this.#options.drawn(answer.id);
    const texts = spokenTexts(message?.querySelectorAll(".markdown") ?? [], this.#options.context().strings);
    return [...newSentences(texts, [])];
  }
}

function isOpen({ status }: ToolBlock): boolean {
  return status === "running" || status === "waiting";
}

function isRunning({ status }: ToolBlock): boolean {
  return status === "running";
}

/** The sentences that were not there before. */
function* newSentences(texts: Iterable<string>, known: readonly string[]): Generator<string> {
  let place = 0;
  for (const text of texts) {
    for (const sentence of text.split(SENTENCE_END)) if (sentence !== known[place++]) yield sentence;
  }
}

/** A sentence about one call, or about several. */
function inOne(
  calls: readonly ToolBlock[],
  one: (call: ToolBlock) => string,
  several: (count: number) => string,
): readonly string[] {
  const [call] = calls;
  if (!call) return [];
  return [calls.length === 1 ? one(call) : several(calls.length)];
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
