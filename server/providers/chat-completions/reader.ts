import type { Usage } from "../../protocol/chat.ts";
import { asString, isRecord, type Json, records, textsOf } from "../../protocol/json.ts";
import { geminiSources, openAiSources, sourceEvents } from "../citations.ts";
import { MalformedOutput, UpstreamFailure, UpstreamTruncation } from "../failures.ts";
import { assistantMessage } from "../history.ts";
import type { ModelEvent, ModelRequest } from "../provider.ts";
import { ExtraFields, endOfTurn, MALFORMED_CALL, ToolCallAssembler, turnFinish } from "../stream-pieces.ts";
import { type ThinkTagPiece, type ThinkTagRule, ThinkTags } from "../think-tags.ts";
import type { MessageReader } from "../transport/request.ts";
import { fieldsIn, openAiDetails, usageOf } from "../usage.ts";

/** Reads the chunks of one Chat Completions stream, as OpenAI and the servers that copied it send them. */
export class ChatReader implements MessageReader<ModelEvent> {
  readonly #request: ModelRequest;
  /** These three are created with the first call, the first extra field, and the first piece that may be thinking. */
  #calls: ToolCallAssembler | undefined;
  #extra: ExtraFields | undefined;
  #tags: ThinkTags | undefined;
  readonly #tagRule: ThinkTagRule;
  /** The pieces of the text. */
  #content: string[] = [];
  #finish: string | undefined;
  #usage: Usage | undefined;
  /** Whether the answer so far ends in a tool call. */
  #endsInCall = false;
  /** Some servers name a finish reason in each chunk: then it is no sign of the end. */
  #finishesEarly = false;
  #hasSpoken = false;
  /** Gemini's sources of the whole text. */
  #grounding: Json | undefined;
  #annotations: unknown[] = [];
  /** Whether a chunk with a finish reason can be the last: it has no content, or others with content came before. */
  #isLast = false;

  constructor(request: ModelRequest, tagRule: ThinkTagRule) {
    this.#request = request;
    this.#tagRule = tagRule;
  }

  read(_type: string, chunk: Json, said: ModelEvent[]): void {
    if (isRecord(chunk.x_groq)) {
      refuse(chunk.x_groq.error);
      this.#usage = readUsage(chunk.x_groq.usage) ?? this.#usage;
    }
    if (isRecord(chunk.usage)) this.#usage = readUsage(chunk.usage) ?? this.#usage;
    // LiteLLM passes Gemini's grounding on beside the choices.
    if (chunk.vertex_ai_grounding_metadata) this.#ground([chunk.vertex_ai_grounding_metadata].flat().at(-1));
    // The chunk with the usage has no choices; some servers write `null` there.
    const choice: unknown = Array.isArray(chunk.choices) ? chunk.choices[0] : undefined;
    if (!isRecord(choice)) return;
    refuse(choice.error);
    const isMore = isRecord(choice.delta) && saysMore(choice.delta);
    if (this.#finish !== undefined && isMore) this.#finishesEarly = true;
    this.#finish = asString(choice.finish_reason) || this.#finish;
    if (this.#finish !== undefined && (!isMore || this.#hasSpoken)) this.#isLast = true;
    this.#hasSpoken ||= isMore;
    if (isRecord(choice.delta)) this.#delta(choice.delta, said);
  }

  #ground(grounding: unknown): void {
    if (isRecord(grounding) && Object.keys(grounding).length > 0) this.#grounding = grounding;
  }

  get isFinished(): boolean {
    return this.#isLast && !this.#finishesEarly;
  }

  /** The API has no names for its events, but a server may name its chunks all the same. */
  knows(_event: string, { choices }: Json): boolean {
    return Array.isArray(choices);
  }

  /** Collected calls are made even if the finish reason is "stop", as on several servers. */
  end(said: ModelEvent[], isDone: boolean): void {
    // Several servers name no finish reason, and end with `[DONE]` all the same.
    const reason = this.#finish ?? (isDone ? "stop" : "");
    if (reason === "") throw withoutReason();
    if (this.#tags !== undefined) this.#say(this.#tags.end(), said);
    const known = turnFinish(reason);
    const finish = known ?? "stop";
    const isSure = this.#finish !== undefined;
    const end = { finish, isSure, endsInCall: this.#endsInCall, request: this.#request };
    const calls = this.#calls?.finish(end) ?? [];
    if (!isSure && calls.length === 0 && (this.#content.length === 0 || this.#calls !== undefined))
      throw withoutReason();
    if (calls.length === 0 && MALFORMED_CALL.test(reason)) throw new MalformedOutput("a tool call");
    if (reason === "error") refuse("the stream was ended by an error");
    if (known === undefined) throw new UpstreamTruncation(`its finish_reason is ${reason}`);
    const text = this.#content.join("");
    const message = { ...this.#extra?.toObject(), ...assistantMessage(text, calls) };
    this.#request.keep(message);
    // LiteLLM repeats Gemini's grounding as annotations, with positions in another unit.
    const sources = this.#grounding ? geminiSources(this.#grounding, text) : openAiSources(this.#annotations, text);
    said.push(...sourceEvents(sources));
    said.push(...endOfTurn(message, finish, this.#usage));
  }

  #delta(delta: Json, said: ModelEvent[]): void {
    const thinking = thinkingOf(delta);
    if (thinking !== "") {
      this.#withTags().sawThinking();
      this.#say({ thinking, text: "" }, said);
    }
    this.#contentOf(delta, said);
    if (Array.isArray(delta.tool_calls)) this.#callsOf(delta.tool_calls);
    for (const name of Object.keys(delta)) if (!READ_FIELDS.has(name)) this.#keep(name, delta[name]);
    if (Array.isArray(delta.annotations)) this.#annotations.push(...delta.annotations);
    if (isRecord(delta.extra_content)) this.#keep("extra_content", this.#ofGoogle(delta.extra_content));
  }

  #callsOf(list: readonly unknown[]): void {
    for (const piece of records(list)) {
      this.#calls ??= new ToolCallAssembler();
      this.#calls.add(piece);
      this.#endsInCall = true;
    }
  }

  /** Extra content without the `thought` flag, which would make the whole message a thought; `null` if nothing is left. */
  #ofGoogle(extra: Json): Json | null {
    if (!isRecord(extra.google)) return extra;
    const { thought: _flag, grounding_metadata: grounding, ...google } = extra.google;
    this.#ground(grounding);
    const hasOthers = Object.keys(extra).length > 1 || Object.keys(google).length > 0;
    return hasOthers ? { ...extra, google } : null;
  }

  #keep(name: string, piece: unknown): void {
    this.#extra ??= new ExtraFields();
    this.#extra.add(name, piece);
  }

  /** Reads the content: a string or, from Mistral, an array of parts. */
  #contentOf(delta: Json, said: ModelEvent[]): void {
    const { content, refusal } = delta;
    const written = asString(content) + asString(refusal);
    const isFlagged = isThought(delta);
    const isText = !isFlagged && !written.includes("<") && this.#passesText(written);
    if (isText) this.#say({ thinking: "", text: written }, said);
    else if (written !== "" || isFlagged) this.#say(this.#withTags().push(written, isFlagged), said);
    if (!Array.isArray(content)) return;
    for (const part of records(content)) {
      if (part.type !== "thinking") {
        this.#say(this.#withTags().push(asString(part.text)), said);
        continue;
      }
      this.#keep("thinking_parts", [part]);
      this.#say({ thinking: textsOf(part.thinking, "text"), text: "" }, said);
    }
  }

  /** Whether a piece without "<" is text unchanged. Whitespace at the start may come before a tag. */
  #passesText(piece: string): boolean {
    if (this.#tags !== undefined) return this.#tags.passesText;
    return !this.#tagRule.anywhere && (this.#content.length > 0 || piece.trim() !== "");
  }

  #withTags(): ThinkTags {
    this.#tags ??= new ThinkTags(this.#tagRule, () => this.#content.join(""), this.#content.length > 0);
    return this.#tags;
  }

  #say({ thinking, text, wasThinking }: ThinkTagPiece, said: ModelEvent[]): void {
    if (wasThinking && this.#content.length > 0) {
      this.#content = [];
      said.push({ type: "text_was_thinking" });
    }
    if (thinking !== "") said.push({ type: "thinking", delta: thinking });
    if (text === "") return;
    this.#content.push(text);
    this.#endsInCall = false;
    said.push({ type: "text", delta: text });
  }
}

function withoutReason(): UpstreamTruncation {
  return new UpstreamTruncation("its stream ended without a finish_reason");
}

/** Whether a delta has content or calls, so that the answer continues. */
function saysMore({ content, tool_calls: calls }: Json): boolean {
  return asString(content) !== "" || (Array.isArray(calls) && calls.length > 0);
}

function refuse(error: unknown): void {
  if (error !== undefined && error !== null) throw new UpstreamFailure({ error });
}

/** Fields of a delta that are not kept as extra fields, because other code reads them. `refusal` is kept as text. */
const READ_FIELDS = new Set(["role", "content", "refusal", "tool_calls", "annotations", "extra_content"]);

/** The same reasoning may come in two or three fields at once: only the first of them counts. */
function thinkingOf(delta: Json): string {
  const plain = asString(delta.reasoning_content) || asString(delta.reasoning);
  if (plain !== "" || !(delta.thinking_blocks || delta.reasoning_details)) return plain;
  return textsOf(delta.thinking_blocks, "thinking") || textsOf(delta.reasoning_details, "text");
}

/** Google flags a delta whose content is a thought, whatever server stands in between. */
function isThought({ extra_content: extra }: Json): boolean {
  return isRecord(extra) && isRecord(extra.google) && extra.google.thought === true;
}

/**
 * Gemini and Grok count reasoning only in the total; OpenAI's `completion_tokens` include it. The details have the names of
 * OpenAI and OpenRouter, or else of DeepSeek, Moonshot, Perplexity, LiteLLM (for Claude) or Alibaba (for Qwen).
 */
function readUsage(usage: unknown): Usage | undefined {
  const { prompt_tokens: input, completion_tokens: output, total_tokens: total, ...counts } = fieldsIn(usage);
  const { prompt_tokens_details: ofInput, completion_tokens_details: ofOutput } = counts;
  const { cached, written, reasoning } = openAiDetails(ofInput, ofOutput);
  return usageOf({
    ...{ input, output, total, reasoning: reasoning ?? counts.reasoning_tokens },
    cached: cached ?? counts.prompt_cache_hit_tokens ?? counts.cached_tokens,
    written: written ?? fieldsIn(ofInput).cache_creation_input_tokens ?? counts.cache_creation_input_tokens,
  });
}
