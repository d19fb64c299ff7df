import type { Usage } from "../../protocol/chat.ts";
import { isRecord } from "../../protocol/is-record.ts";
import { ExtraFields, textOfParts } from "../extra-fields.ts";
import { toProviderError, truncated, UpstreamGarbage } from "../failures/failures.ts";
import { GrowingText } from "../growing-text.ts";
import { assistantMessage, endOfAnswer } from "../history/answer.ts";
import type { ChatModelEvent, TurnFinish } from "../provider.ts";
import { text } from "../text.ts";
import { type ThinkTagPiece, type ThinkTagRule, ThinkTags } from "../think-tags.ts";
import { ToolCallAssembler } from "../tool-call-assembler.ts";
import { UpstreamFailure } from "../upstream/refusal.ts";

/** Reads the chunks of one Chat Completions stream, as OpenAI and all who copied it send them. */
export class ChatReader {
  readonly #label: string;
  readonly #calls = new ToolCallAssembler();
  readonly #extra = new ExtraFields();
  readonly #tags: ThinkTags;
  readonly #content = new GrowingText();
  #finish: string | undefined;
  #usage: Usage | undefined;
  /** Whether the answer so far ends in a tool call. */
  #endsInCall = false;

  constructor(label: string, tags: ThinkTagRule) {
    this.#label = label;
    this.#tags = new ThinkTags(tags);
  }

  /** Whether the model has said that it is done: a stream that ends before that was cut. */
  get finished(): boolean {
    return this.#finish !== undefined;
  }

  /** Adds what one chunk says to `said`. */
  read(chunk: Readonly<Record<string, unknown>>, said: ChatModelEvent[]): void {
    if (isRecord(chunk.x_groq)) {
      this.#refuse(chunk.x_groq.error);
      this.#usage = readUsage(chunk.x_groq.usage) ?? this.#usage;
    }
    this.#usage = readUsage(chunk.usage) ?? this.#usage;
    // The chunk with the usage has no choices; some servers write `null` there.
    const choice: unknown = Array.isArray(chunk.choices) ? chunk.choices[0] : undefined;
    if (!isRecord(choice)) return;
    this.#refuse(choice.error);
    this.#finish = text(choice.finish_reason) || this.#finish;
    if (isRecord(choice.delta)) this.#delta(choice.delta, said);
  }

  /**
   * What there is to say at the end of the stream. Calls that were gathered are made also where the finish
   * reason is "stop", as on several servers. `taken` are the call ids of the conversation so far.
   */
  end(taken: ReadonlySet<string>): ChatModelEvent[] {
    const events: ChatModelEvent[] = [];
    this.#say(this.#tags.end(), events);
    const finish = turnFinish(this.#finish);
    const calls = this.#calls.finish({
      finish,
      endsInCall: this.#endsInCall,
      taken,
      label: this.#label,
    });
    // Google's way to say that the model wrote a call that is none, or of a tool that it does not have.
    if (calls.length === 0 && this.#finish?.startsWith("function_call_filter")) {
      this.#garbage("the model's tool call was malformed");
    }
    if (this.#finish === "error") this.#refuse("the stream was ended by an error");
    // DeepSeek's and vLLM's ways to say that the server gave up in the middle of the answer.
    if (this.#finish === "insufficient_system_resource" || this.#finish === "abort") {
      throw truncated(this.#label);
    }
    const message = {
      ...this.#extra.toObject(),
      ...assistantMessage(this.#content.text, calls),
    };
    return [...events, ...endOfAnswer(message, finish, this.#usage)];
  }

  #delta(delta: Readonly<Record<string, unknown>>, said: ChatModelEvent[]): void {
    this.#say({ thinking: thinkingOf(delta), text: "" }, said);
    this.#contentOf(delta, said);
    if (Array.isArray(delta.tool_calls)) {
      for (const piece of delta.tool_calls) {
        if (!isRecord(piece)) continue;
        this.#calls.add(piece);
        this.#endsInCall = true;
      }
    }
    this.#extra.add(delta, READ_FIELDS);
    if (isRecord(delta.extra_content)) {
      this.#extra.add(googleContent(delta.extra_content), NO_FIELDS);
    }
  }

  /** A string, or the parts of an array, as Mistral sends them. */
  #contentOf(delta: Readonly<Record<string, unknown>>, said: ChatModelEvent[]): void {
    const { content, refusal } = delta;
    const written = text(content) + text(refusal);
    if (written !== "" || isThought(delta)) this.#say(this.#tags.push(written, isThought(delta)), said);
    if (!Array.isArray(content)) return;
    for (const part of content) {
      if (!isRecord(part)) continue;
      if (part.type !== "thinking") {
        this.#say(this.#tags.push(text(part.text)), said);
        continue;
      }
      this.#extra.add({ thinking_parts: [part] }, NO_FIELDS);
      this.#say({ thinking: textOfParts(part.thinking), text: "" }, said);
    }
  }

  #say({ thinking, text }: ThinkTagPiece, said: ChatModelEvent[]): void {
    if (thinking !== "") said.push({ type: "thinking", delta: thinking });
    if (text === "") return;
    this.#content.add(text);
    this.#endsInCall = false;
    said.push({ type: "text", delta: text });
  }

  #refuse(error: unknown): void {
    if (error === undefined || error === null) return;
    throw toProviderError(this.#label, new UpstreamFailure({ error }));
  }

  #garbage(problem: string): never {
    throw toProviderError(this.#label, new UpstreamGarbage(problem));
  }
}

/** Fields of a delta that become fields of the message by themselves. `refusal` is kept as text. */
const READ_FIELDS = new Set(["role", "content", "refusal", "tool_calls", "extra_content"]);
const NO_FIELDS = new Set<string>();

/** The same reasoning may come in two or three fields at once: only the first that is there counts. */
function thinkingOf(delta: Readonly<Record<string, unknown>>): string {
  const plain = text(delta.reasoning_content) || text(delta.reasoning);
  if (plain !== "") return plain;
  return textsOf(delta.thinking_blocks, "thinking") || textsOf(delta.reasoning_details, "text");
}

function textsOf(list: unknown, field: string): string {
  if (!Array.isArray(list)) return "";
  return list.map((item: unknown) => (isRecord(item) ? text(item[field]) : "")).join("");
}

/** Google flags a delta whose content is a thought, whatever server stands in between. */
function isThought({ extra_content: extra }: Readonly<Record<string, unknown>>): boolean {
  return isRecord(extra) && isRecord(extra.google) && extra.google.thought === true;
}

/**
 * Google's extra content without that flag: on the whole message it would make the answer a thought.
 */
function googleContent(extra: Readonly<Record<string, unknown>>): Record<string, unknown> {
  if (!isRecord(extra.google)) return { extra_content: extra };
  const { thought: _flag, ...google } = extra.google;
  const others = Object.keys(extra).length > 1 || Object.keys(google).length > 0;
  return others ? { extra_content: { ...extra, google } } : {};
}

/**
 * Gemini and Grok count what was thought only in the total, where OpenAI's `completion_tokens` include it.
 */
function readUsage(usage: unknown): Usage | undefined {
  if (!isRecord(usage)) return undefined;
  const { prompt_tokens: input, completion_tokens: output, total_tokens: total } = usage;
  if (typeof input !== "number" || typeof output !== "number") return undefined;
  const all = typeof total === "number" ? total - input : output;
  return { input_tokens: input, output_tokens: Math.max(output, all) };
}

/** Google adds the kind of filter: "content_filter: PROHIBITED_CONTENT". */
function turnFinish(reason = ""): TurnFinish {
  if (reason.startsWith("content_filter")) return "content_filter";
  // The second is Mistral's, for a full context.
  return reason === "length" || reason === "model_length" ? "length" : "stop";
}
