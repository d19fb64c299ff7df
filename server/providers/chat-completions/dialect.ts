/**
 * How Chat Completions APIs differ from each other: known differences as data and small functions, and those that are
 * learned from the text of refusals.
 */

import type { FilePart, HistoryMessage } from "../../protocol/chat.ts";
import type { ApiError } from "../../protocol/errors.ts";
import { isRecord, records } from "../../protocol/json.ts";
import {
  blamesParameter,
  causeNames,
  type ExplainFailure,
  providerError,
  UpstreamFailure,
  UpstreamRefusal,
} from "../failures.ts";
import { mayBeQuoted } from "../history.ts";
import type { ModelSettings, ToolSpec } from "../provider.ts";
import { CALL_FIELDS, FUNCTION_FIELDS } from "../stream-pieces.ts";
import { MODEL_TAGS, type ThinkTagRule } from "../think-tags.ts";

export interface ChatDialect {
  readonly thinkTags: ThinkTagRule;
  /**
   * The extra fields of earlier answers and their calls that are sent back to this API. Absent: all, since an unknown
   * server may need any of them; a second try leaves out those that it refuses by name.
   */
  readonly takesBack?: ReadonlySet<string>;
  /** What an earlier answer's call without a signature of this API must carry instead. */
  readonly unsignedCall?: Readonly<Record<string, unknown>>;
  /** An attachment in the form of this API. */
  part(part: FilePart): object;
  /** The JSON Schema of a tool's parameters. */
  parameters(schema: ToolSpec["parameters"]): Record<string, unknown>;
  /** The fields of the body that the agent's settings ask for. */
  settings(settings: ModelSettings, quirks: SettingQuirks): Record<string, unknown>;
  /** Matches the refusals of a model that cannot show its thoughts. */
  readonly thoughtsRefused?: RegExp;
  /** Explains failures that only this API has; `undefined` leaves them to the common rules. */
  readonly explain?: ExplainFailure;
}

/** What was learned about a server, for all conversations. */
export interface SettingQuirks {
  /** Whether it takes `stream_options`. */
  readonly usage: boolean;
  /** Whether the model can be asked for its thoughts. */
  readonly thoughts: boolean;
  /** The older name is the default: LiteLLM maps it, and other servers may know no other. */
  readonly maxTokens: "max_tokens" | "max_completion_tokens";
}

/** What was learned about a server, for one request. The fields below are learned for one conversation only. */
export interface Quirks extends SettingQuirks {
  /** Extra fields of earlier answers that it refuses. */
  readonly refused: ReadonlySet<string>;
  /** It refuses signed thinking of earlier answers, because another model made it. */
  readonly dropsSigned: boolean;
  /** It demands `reasoning_content` on every earlier answer. */
  readonly wantsReasoning: boolean;
  /** It takes call ids of nine letters and digits only. */
  readonly shortIds: boolean;
  /** It demands an answer between a tool's result and the user's next message. */
  readonly closesTools: boolean;
}

/** The API as OpenAI documents it, with what compatible servers have in common. */
export const PLAIN_DIALECT: ChatDialect = {
  thinkTags: MODEL_TAGS,
  part: (part) => part,
  parameters: (schema) => schema,
  settings: plainSettings,
};

/** The settings under Chat Completions' own names. */
export function plainSettings(
  { reasoningEffort, temperature, maxOutputTokens, extraBody }: ModelSettings,
  { maxTokens }: SettingQuirks,
): Record<string, unknown> {
  return {
    ...(reasoningEffort === undefined ? {} : { reasoning_effort: reasoningEffort }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxOutputTokens === undefined ? {} : { [maxTokens]: maxOutputTokens }),
    ...extraBody,
  };
}

/** How Ollama's OpenAI-compatible API differs. */
export function ollamaDialect(model: string): ChatDialect {
  return {
    ...PLAIN_DIALECT,
    // The one field beyond OpenAI's that its messages have: openai/openai.go.
    takesBack: new Set(["reasoning"]),
    explain: (cause) => explainOllama(model, cause),
  };
}

function explainOllama(model: string, cause: unknown): ApiError | undefined {
  if (causeNames(cause).includes("ECONNREFUSED")) {
    return providerError("provider_error", "Ollama could not be reached: is it running?", { cause });
  }
  if (!(cause instanceof UpstreamRefusal) && !(cause instanceof UpstreamFailure)) return undefined;
  const { text } = cause.detail;
  const options = { cause, retryable: false };
  if (/model .* not found/i.test(text)) {
    const detail = `Ollama does not have the model ${model} yet. Where it runs: ollama pull ${model}`;
    return providerError("provider_error", detail, options);
  }
  const lacking = /does not support (tools|thinking|vision|chat)\b/i.exec(text)?.[1];
  if (lacking === undefined) return undefined;
  const detail = `The model ${model} of Ollama does not support ${lacking}. Choose another one.`;
  return providerError("provider_error", detail, options);
}

/** A message in an API's own form. */
export type SentMessage = Record<string, unknown> & { role: string };

/** No quirks: the server accepts all that OpenAI's does. */
export const NO_QUIRKS: Quirks = {
  usage: true,
  thoughts: true,
  maxTokens: "max_tokens",
  refused: new Set(),
  dropsSigned: false,
  wantsReasoning: false,
  shortIds: false,
  closesTools: false,
};

/** What a refusal teaches about the server that the request did not respect yet; `undefined`: nothing. */
export function learnSetting(
  refusal: UpstreamRefusal,
  quirks: Quirks,
  body: object,
  { thoughtsRefused }: ChatDialect,
): Partial<SettingQuirks> | undefined {
  const { text } = refusal.detail;
  if (quirks.usage && blamesParameter(refusal, "stream_options")) return { usage: false };
  if (quirks.thoughts && thoughtsRefused?.test(text)) return { thoughts: false };
  if ("max_tokens" in body && /\bmax_completion_tokens\b/.test(text)) return { maxTokens: "max_completion_tokens" };
  return undefined;
}

/** The words of refusals from which each setting is learned. */
const SETTING_WORDS: Record<keyof SettingQuirks, RegExp> = {
  usage: /stream_options/i,
  thoughts: /thinking|thought/i,
  maxTokens: /max_completion_tokens/i,
};

/**
 * The learned settings that may be used for all conversations. A refusal may quote the conversation that was sent: if
 * that has the words, they prove nothing about the server.
 */
export function provenSettings(
  learned: Partial<SettingQuirks>,
  history: readonly HistoryMessage[],
): Partial<SettingQuirks> {
  const proven = Object.entries(learned).filter(
    ([name]) => !mayBeQuoted(SETTING_WORDS[name as keyof SettingQuirks], history),
  );
  return Object.fromEntries(proven);
}

/** What a refusal teaches about the conversation that the request did not respect yet; `undefined`: nothing. */
export function learnHistory(
  // Some servers put the sentence into fields of their own: the whole body is searched.
  { body: said }: UpstreamRefusal,
  quirks: Quirks,
  messages: readonly SentMessage[],
): Partial<Quirks> | undefined {
  if (!quirks.wantsReasoning && /reasoning_content\b.{0,80}must be passed back/is.test(said)) {
    return { wantsReasoning: true };
  }
  if (!quirks.shortIds && /tool.?call.?id\b.{0,200}(?:length|too long|must)/is.test(said)) return { shortIds: true };
  if (!quirks.closesTools && /role '?"?user'?"? after role '?"?tool/i.test(said)) return { closesTools: true };
  if (!quirks.dropsSigned && /invalid\W{0,3}signature/i.test(said)) return { dropsSigned: true };
  const words = new Set(said.split(/\W+/));
  const heeded = new Set([...quirks.refused, ...(quirks.wantsReasoning ? ["reasoning_content"] : [])]);
  const blamed = extraFields(messages).filter((name) => words.has(name) && !heeded.has(name));
  return blamed.length === 0 ? undefined : { refused: new Set([...quirks.refused, ...blamed]) };
}

const MESSAGE_FIELDS = new Set(["role", "content", "tool_calls"]);

/** The names of fields that were sent back besides the API's own. */
function extraFields(messages: readonly SentMessage[]): string[] {
  const answers = messages.filter(({ role }) => role === "assistant");
  const calls = answers.flatMap((answer) => records(answer.tool_calls));
  const functions = calls.flatMap((call) => (isRecord(call.function) ? [call.function] : []));
  const beyond = (fields: readonly object[], known: ReadonlySet<string>) =>
    fields.flatMap(Object.keys).filter((name) => !known.has(name));
  const names = [
    ...beyond(answers, MESSAGE_FIELDS),
    ...beyond(calls, CALL_FIELDS),
    ...beyond(functions, FUNCTION_FIELDS),
  ];
  return [...new Set(names)];
}
