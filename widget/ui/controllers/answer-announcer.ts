import { failureText, toolStatusText } from "../../i18n/strings.ts";
import type { AssistantMessage, Message, ToolBlock, ToolStatus } from "../../session/messages.ts";
import type { ChatContext } from "../context.ts";
import { type Announcer, spokenTexts } from "./announcer.ts";

export interface AnswerAnnouncerOptions {
  readonly announcer: Announcer;
  readonly context: () => ChatContext;
  /** Resolves to the message as it is drawn, once it is. */
  readonly drawn: (message: AssistantMessage) => Promise<ParentNode | undefined>;
}

/** Calls that begin within this time of each other, in milliseconds, are spoken of together. */
const TOGETHER = 100;

/** Says what happens in an answer: that it begins, its tool calls, and at its end all of its text. */
export class AnswerAnnouncer {
  readonly #options: AnswerAnnouncerOptions;
  /** The answer that is coming, as it was seen last. */
  #current: AssistantMessage | undefined;
  /** What was last said of its calls, by their ids. */
  readonly #said = new Map<string, ToolStatus>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: AnswerAnnouncerOptions) {
    this.#options = options;
  }

  /** To be called after every change of the messages. */
  watch(messages: readonly Message[]): void {
    const last = messages.at(-1);
    const answer = last?.role === "assistant" ? last : undefined;
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
      return;
    }
    const [known, calls] = [toolCalls(before), toolCalls(answer)];
    // The next turn of the model: what was before is spoken of by itself.
    if (calls.length > known.length && !known.some(isRunning)) this.#sayCalls();
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
    const named = changed.filter(({ status }) => status === "waiting" || status === "stopped");
    const said = ({ tool, status }: ToolBlock) => `${tool}: ${toolStatusText(status, strings)}`;
    const failed = ended.filter(({ status }) => status === "failed").length;
    const texts = [
      ...inOne(begun, ({ tool }) => strings.toolStarted(tool), strings.toolsStarted),
      ...inOne(ended, said, (count) =>
        count > failed ? strings.toolsEnded(count - failed, failed) : strings.stepsFailed(failed),
      ),
      ...named.map(said),
    ];
    if (texts.length > 0) announcer.say(...texts);
    for (const { callId } of begun) this.#said.set(callId, "running");
    for (const { callId, status } of [...ended, ...named]) this.#said.set(callId, status);
  }

  async #end(answer: AssistantMessage): Promise<void> {
    const { announcer, context, drawn } = this.#options;
    if (answer.failure) {
      announcer.interrupt(failureText(answer.failure, context().strings));
      return;
    }
    // Spoken as it is drawn: without the marks of Markdown.
    const message = await drawn(answer);
    if (message) announcer.sayAll(spokenTexts(message.querySelectorAll(".markdown, .note"), context().strings));
  }
}

function toolCalls({ blocks }: AssistantMessage): ToolBlock[] {
  return blocks.filter((block) => block.type === "tool");
}

function isRunning({ status }: ToolBlock): boolean {
  return status === "running";
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
