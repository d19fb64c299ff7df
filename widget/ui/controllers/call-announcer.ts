import { type AssistantMessage, type ToolBlock, type ToolStatus, toolCalls } from "../../conversations/messages.ts";
import "../../i18n/add-part-texts.ts";
import type { ChatContext } from "../context.ts";
import { toolName, toolStatusText } from "../tool-text.ts";
import type { Announcer } from "./announcer.ts";

/** Calls that begin within this time of each other, in milliseconds, are announced together. */
const TOGETHER = 100;

/** The progress of running calls is announced at most once within this time. */
const PROGRESS_EVERY_MS = 10_000;

/** Announces the tool calls of one answer. Calls that wait for the user are announced at the end of the answer. */
export class CallAnnouncer {
  readonly #announcer: Announcer;
  readonly #context: () => ChatContext;
  /** The answer as last seen. */
  #answer: AssistantMessage;
  /** The status last announced of each call, by its id. */
  readonly #said = new Map<string, ToolStatus>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** The progress announced last. */
  #progress: string | undefined;
  #progressTimer: ReturnType<typeof setTimeout> | undefined;

  /** Calls that the answer already has are not announced. */
  constructor(announcer: Announcer, context: () => ChatContext, answer: AssistantMessage) {
    this.#announcer = announcer;
    this.#context = context;
    this.#answer = answer;
    for (const { callId, status } of callsOf(answer)) this.#said.set(callId, status);
  }

  /** Must be called with the answer after every change of its calls. */
  watch(answer: AssistantMessage): void {
    const [known, calls] = [callsOf(this.#answer), callsOf(answer)];
    // The model's next turn has begun: the calls of the one before get a sentence of their own.
    if (calls.length > known.length && !known.some(isOpen)) this.say();
    this.#answer = answer;
    if (calls.some(({ callId, status }) => this.#said.get(callId) !== status)) {
      this.#timer ??= setTimeout(() => this.say(), TOGETHER);
    }
    if (calls.some(isRunning)) this.#progressTimer ??= setTimeout(() => this.#sayProgress(), PROGRESS_EVERY_MS);
  }

  #sayProgress(): void {
    this.#progressTimer = undefined;
    const { strings, modes } = this.#context();
    const running = modes.tools === "hidden" ? [] : callsOf(this.#answer).filter(isRunning);
    const call = running.findLast(({ progress, steps }) => progress || steps?.some(isRunning));
    const step = call?.steps?.findLast(isRunning);
    const text = call && (step ? toolName(step, strings) : `${toolName(call, strings)} ${call.progress}`);
    if (text && text !== this.#progress) this.#announcer.say(text);
    this.#progress = text;
  }

  /** Drops what was not announced yet. */
  leave(): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#progressTimer);
  }

  /** Announces which calls have begun and, once none is running any more, how they have ended. */
  say(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const { strings, modes } = this.#context();
    const calls = modes.tools === "hidden" ? [] : callsOf(this.#answer);
    const isOver = !calls.some(isRunning);
    const changed = calls.filter(({ callId, status }) => this.#said.get(callId) !== status);
    const begun = changed.filter(({ callId, status }) => status !== "waiting" && !this.#said.has(callId));
    const ended = changed.filter(({ status }) => isOver && (status === "completed" || status === "failed"));
    const named = changed.filter(({ status }) => status === "stopped");
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
    if (texts.length > 0) this.#announcer.say(...texts);
    for (const { callId } of begun) this.#said.set(callId, "running");
    for (const { callId, status } of [...ended, ...named]) this.#said.set(callId, status);
  }
}

/** The calls to announce: users know which ones they have declined. */
function callsOf(answer: AssistantMessage): readonly ToolBlock[] {
  return toolCalls(answer).filter(({ decision }) => decision?.approved !== false);
}

function isOpen({ status }: ToolBlock): boolean {
  return status === "running" || status === "waiting";
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
