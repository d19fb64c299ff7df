/** The hooks that decide during a run: `onMessage` and `onAnswer`. */

import type { MarkEvent, RunEvent } from "../observe/run-observer.ts";
import type { ReceivedFile } from "../protocol/attachments.ts";
import type { StreamEvent, ThinkingEvent, TokenEvent } from "../protocol/events.ts";
import { isRecord } from "../protocol/json.ts";
import { SEPARATOR } from "./exchange.ts";
import { askAuthor, describeFile, type Hooks, type Refusal, type Replacement } from "./hooks.ts";
import type { RunContext } from "./run-context.ts";

/** The hook's decision. If the hook fails or returns anything else, nothing passes. @throws as `askAuthor` does */
function decisionOf(
  name: "onMessage" | "onAnswer",
  decide: (context: RunContext) => unknown,
  context: RunContext,
  maxMs: number,
): Promise<Partial<Refusal & Replacement>> {
  return askAuthor(name, async (ctx) => checkDecision(name, await decide(ctx)), context, maxMs);
}

const DECISIONS = {
  onMessage: ["refuse", "message"],
  onAnswer: ["refuse"],
} as const;

/** A misspelt field must not let anything pass. */
function checkDecision(name: "onMessage" | "onAnswer", returned: unknown): Partial<Refusal & Replacement> {
  if (returned === undefined || returned === null) return {};
  const known: readonly string[] = DECISIONS[name];
  const [[field, text] = [], ...others] = isRecord(returned) ? Object.entries(returned) : [];
  if (field !== undefined && others.length === 0 && known.includes(field) && isText(text)) {
    return { [field]: text.toWellFormed() };
  }
  const allowed = known.map((one) => `{ ${one}: "…" }`).join(" or ");
  // The returned value is not quoted: it may contain the words of a user.
  throw new TypeError(`${name} must return nothing, or ${allowed} with a text that is not empty.`);
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value.trim() !== "";
}

/** What `onMessage` decides on the message of a run. @throws ApiError, or the reason of an abort */
export async function decideOnMessage(
  { onMessage }: Hooks,
  { message, attachments }: { message: string; attachments: readonly ReceivedFile[] },
  context: RunContext,
  maxMs: number,
): Promise<Partial<Refusal & Replacement>> {
  if (onMessage === undefined) return {};
  const incoming = { message, attachments: attachments.map(describeFile) };
  return decisionOf("onMessage", (ctx) => onMessage(incoming, ctx), context, maxMs);
}

/** Withholds an answer's text and thinking until `onAnswer` lets them pass. */
export class WithheldAnswer {
  readonly #onAnswer: NonNullable<Hooks["onAnswer"]>;
  readonly #events: StreamEvent[] = [];
  /** The texts between tools. */
  readonly #texts: string[] = [];
  isReleased = false;
  /** Whether a tool event came after the last text. */
  #isParted = true;
  /** The `token` event to which the next text is appended. */
  #open: TokenEvent | undefined;

  constructor(onAnswer: NonNullable<Hooks["onAnswer"]>) {
    this.#onAnswer = onAnswer;
  }

  /** The events that clients may get now; withholds the others. */
  pass<Event extends RunEvent>(events: Event[]): Event[] {
    return events.filter((event) => !this.#withhold(event));
  }

  /** Why `onAnswer` refuses the answer; `undefined`: release it. `final` is the text of `done`. @throws ApiError */
  async refusal(final: string, context: RunContext, maxMs: number): Promise<string | undefined> {
    const texts = this.#texts;
    let from = texts.length;
    for (let chars = 0; from > 0 && chars < final.length; ) chars += texts[--from]?.length ?? 0;
    const isKnown = texts.slice(from).join("") === final;
    const answer = (isKnown ? texts : [...texts, final]).join(SEPARATOR);
    const { refuse } = await decisionOf("onAnswer", (ctx) => this.#onAnswer({ answer }, ctx), context, maxMs);
    return refuse;
  }

  /** The withheld events, in their order, for clients to get now. */
  release(): StreamEvent[] {
    this.isReleased = true;
    return this.#events;
  }

  #withhold(event: RunEvent): boolean {
    if (event.type === "token") this.#addText(event.data);
    else if (event.type === "thinking") this.#addThinking(event);
    else if (event.type === "unsaid") this.#unsay(event.data);
    else if (event.type === "mark") this.#addSource(event);
    else {
      this.#isParted = true;
      this.#open = undefined;
      return false;
    }
    return true;
  }

  #addText(delta: string): void {
    if (this.#isParted) {
      // Events of calls are not withheld, so texts with calls between them are next to each other when released.
      if (this.#texts.length > 0) this.#events.push({ type: "token", data: SEPARATOR });
      this.#texts.push("");
      this.#isParted = false;
    }
    if (this.#open === undefined) {
      this.#open = { type: "token", data: "" };
      this.#events.push(this.#open);
    }
    this.#open.data += delta;
    this.#texts.push(`${this.#texts.pop()}${delta}`);
  }

  #addThinking(event: ThinkingEvent): void {
    this.#open = undefined;
    this.#events.push(event);
  }

  /** Turns the text into thinking, because that is what it was. */
  #unsay(data: string): void {
    if (this.#open !== undefined && this.#open.data === data) {
      const text = this.#texts.pop() ?? "";
      this.#texts.push(text.slice(0, text.length - data.length));
      this.#open.data = "";
    }
    this.#addThinking({ type: "thinking", data });
  }

  /** The place is an offset in the text as it is released: all texts, with separators between them. */
  #addSource(mark: MarkEvent): void {
    this.#events.push(mark.placed(this.#texts.join(SEPARATOR).length));
  }
}
