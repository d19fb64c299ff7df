import { failureText, toolName, toolStatusText } from "../../i18n/strings.ts";
import { type AssistantMessage, questionsOf, type ToolBlock, type ToolStatus } from "../../session/messages.ts";
import type { ChatContext } from "../context.ts";
import { type Announcer, SENTENCE_END, spokenTexts } from "./announcer.ts";

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
      this.#sayCalls();
      if (answer && answer.id === this.#current?.id) void this.#end(answer);
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
    await this.say(id, await this.#known, answer.suggestions);
  }

  /** Says a message as it is drawn: without the marks of Markdown. */
  async say(id: string, known: readonly string[] = [], suggestions: readonly string[] = []): Promise<void> {
    const { announcer, context, drawn } = this.#options;
    const { strings } = context();
    const message = await drawn(id);
    if (!message) return;
    announcer.sayAll(
      (function* () {
        yield* newSentences(spokenTexts(message.querySelectorAll(".name, .markdown, .note"), strings), known);
        if (suggestions.length > 0) yield `${strings.suggestions}: ${suggestions.join(", ")}`;
      })(),
    );
  }

  async #sentencesOf(answer: AssistantMessage): Promise<readonly string[]> {
    const message = await this.#options.drawn(answer.id);
    const texts = spokenTexts(message?.querySelectorAll(".markdown") ?? [], this.#options.context().strings);
    return [...newSentences(texts, [])];
  }
}

function toolCalls({ blocks }: AssistantMessage): ToolBlock[] {
  return blocks.filter((block) => block.type === "tool");
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
