/** What one Chat Completions API does differently from the others, as data and small functions. */

import type { FilePart } from "../../protocol/chat.ts";
import type { ApiError } from "../../protocol/errors.ts";
import { causeNames, type ExplainFailure, providerError, UpstreamFailure, UpstreamRefusal } from "../failures.ts";
import type { ModelSettings, ToolSpec } from "../provider.ts";
import { MODEL_TAGS, type ThinkTagRule } from "../think-tags.ts";

export interface ChatDialect {
  readonly thinkTags: ThinkTagRule;
  /**
   * The extra fields of earlier answers and their calls that this API takes back. Absent: all, since a server of which
   * nothing is known may need any of them; those that it refuses by name are left out of a second try.
   */
  readonly takesBack?: ReadonlySet<string>;
  /** What an earlier answer's call without a signature of this API must carry instead. */
  readonly unsignedCall?: Readonly<Record<string, unknown>>;
  /** How an attachment travels. */
  part(part: FilePart): object;
  /** The JSON Schema of a tool's parameters. */
  parameters(schema: ToolSpec["parameters"]): Record<string, unknown>;
  /** The fields of the body that the agent's settings ask for. */
  settings(settings: ModelSettings, quirks: SettingQuirks): Record<string, unknown>;
  /** Finds in a refusal that the model cannot show its thoughts. */
  readonly thoughtsRefused?: RegExp;
  /** What only this API's failures mean; `undefined` leaves it to the common rules. */
  readonly explain?: ExplainFailure;
}

/** What was learned of a server for all conversations. */
export interface SettingQuirks {
  /** Whether it takes `stream_options`. */
  readonly usage: boolean;
  /** Whether the model can be asked for its thoughts. */
  readonly thoughts: boolean;
  /** The older name is the default: LiteLLM maps it, and other servers may know no other. */
  readonly maxTokens: "max_tokens" | "max_completion_tokens";
}

/** What was learned of a server that shapes one request: the fields of its own are learned for one conversation. */
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

/** The API as OpenAI described it, with what the servers that copied it share. */
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
