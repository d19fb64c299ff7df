/** Google's OpenAI-compatible API: the Gemini API itself, and the dialect that it shares with Vertex AI. */

import { requireSetting } from "../../config/settings.ts";
import type { FilePart } from "../../protocol/chat.ts";
import type { ApiError } from "../../protocol/errors.ts";
import { isRecord } from "../../protocol/json.ts";
import { type ChatDialect, plainSettings, type SettingQuirks } from "../chat-completions/dialect.ts";
import { createChatCompletions } from "../chat-completions/model.ts";
import { type ExplainFailure, providerError, readRetryAfter, UpstreamFailure, UpstreamRefusal } from "../failures.ts";
import type { ModelSettings, Provider, ProviderSetup } from "../provider.ts";
import { MODEL_TAGS, type ThinkTagRule } from "../think-tags.ts";
import { geminiSchema } from "./schema.ts";

/** Google's Gemini API, through its OpenAI-compatible form. */
export function createGemini(setup: ProviderSetup): Provider {
  const { label, model, settings } = setup;
  return createChatCompletions({
    ...setup,
    baseURL: settings.geminiUrl || "https://generativelanguage.googleapis.com/v1beta/openai/",
    apiKey: requireSetting(setup, "geminiKey", "a key from Google AI Studio"),
    dialect: geminiDialect({ label, model, thinkTags: { ...MODEL_TAGS, mayLackOpening: false } }),
  });
}

export interface GeminiDialectOptions {
  label: string;
  model: string;
  thinkTags: ThinkTagRule;
  /** Asks the server to put thoughts in tags of this name, if it does not flag them. */
  thoughtTag?: string;
  explain?: ExplainFailure;
}

export function geminiDialect(options: GeminiDialectOptions): ChatDialect {
  const { label, model, thinkTags } = options;
  return {
    thinkTags,
    // Anything else is refused: "Unknown name".
    takesBack: new Set(["extra_content"]),
    ...(takesLevels(model) ? { unsignedCall: UNSIGNED_CALL } : {}),
    part: imagePart,
    parameters: geminiSchema,
    settings: (settings, quirks) => geminiSettings(options, settings, quirks),
    thoughtsRefused:
      /\bthinking(?:[_ ](?:config|level|budget|mode))?\b.{0,60}(?:\bnot\b|n't\b|\bonly\b)|include_?thoughts|unknown name \W*(?:thinking|thought_tag)/i,
    explain: (cause) => options.explain?.(cause) ?? geminiFailure(label, cause),
  };
}

/**
 * Gemini 3 refuses an earlier call without a thought signature, such as another model's. This value is the documented
 * replacement: https://ai.google.dev/gemini-api/docs/thought-signatures
 */
const UNSIGNED_CALL = {
  extra_content: { google: { thought_signature: "skip_thought_signature_validator" } },
};

/** A `file` part is refused; an `image_url` with a PDF inside is read. */
function imagePart(part: FilePart): object {
  if (part.type !== "file") return part;
  return { type: "image_url", image_url: { url: part.file.file_data } };
}

/**
 * Thoughts are shown only if `thinking_config` asks for them, and the API accepts either that or `reasoning_effort`: so
 * the effort is set inside `thinking_config`.
 */
function geminiSettings(
  { model, thoughtTag }: GeminiDialectOptions,
  settings: ModelSettings,
  quirks: SettingQuirks,
): Record<string, unknown> {
  const { reasoningEffort, extraBody = {}, ...others } = settings;
  // Google's scale ends at "high".
  const effort = reasoningEffort === "xhigh" ? "high" : reasoningEffort;
  const thinks = quirks.thoughts && effort !== "none" && !("reasoning_effort" in extraBody);
  const { extra_body: own, ...body } = extraBody;
  const ownFields = isRecord(own) ? own : {};
  const google = {
    ...(thinks ? { thinking_config: { ...thinkingDepth(model, effort), include_thoughts: true } } : {}),
    ...(thinks && thoughtTag !== undefined ? { thought_tag_marker: thoughtTag } : {}),
    ...(isRecord(ownFields.google) ? ownFields.google : {}),
  };
  const isBeside = effort !== undefined && !("thinking_config" in google);
  const fields = { ...ownFields, ...(Object.keys(google).length === 0 ? {} : { google }) };
  return {
    ...plainSettings({ ...others, ...(isBeside ? { reasoningEffort: effort } : {}), extraBody: body }, quirks),
    ...(Object.keys(fields).length === 0 ? {} : { extra_body: fields }),
  };
}

/** Models from Gemini 3 on take a level of thinking, and older ones a number of tokens. */
function takesLevels(model: string): boolean {
  const version = /gemini-(\d+)/.exec(model)?.[1];
  // Names without a number are those of the newest models: "gemini-flash-latest".
  return version === undefined ? /gemini/.test(model) : Number(version) >= 3;
}

function thinkingDepth(model: string, effort: keyof typeof BUDGETS | undefined): Record<string, unknown> {
  if (effort === undefined) return {};
  return takesLevels(model) ? { thinking_level: effort } : { thinking_budget: BUDGETS[effort] };
}

/** The budgets that the API itself uses for `reasoning_effort`: https://ai.google.dev/gemini-api/docs/openai */
const BUDGETS = { minimal: 1024, low: 1024, medium: 8192, high: 24_576 } as const;

/** Explains refusals that the common rules would misread; `undefined` for all others. */
export function geminiFailure(label: string, cause: unknown): ApiError | undefined {
  if (!(cause instanceof UpstreamRefusal) && !(cause instanceof UpstreamFailure)) return undefined;
  const { code, text } = cause.detail;
  const status = cause instanceof UpstreamRefusal ? cause.status : Number(code);
  // Google answers a wrong key with 400, not 401.
  if (status === 400 && /API key (?:not valid|expired|not found)|API_KEY_INVALID/i.test(text)) {
    return providerError("provider_auth", `${label} refused the API key of this server.`, { cause });
  }
  if (status === 400 && /location is not supported/i.test(text)) {
    const detail = `${label} cannot be used from the country in which this server runs.`;
    return providerError("provider_auth", detail, { cause });
  }
  if (status !== 429) return undefined;
  const detail = `${label} is getting too many requests right now.`;
  return providerError("provider_rate_limited", detail, { cause, retryAfter: retryDelay(cause) });
}

/** Google names the wait in the body, as `RetryInfo`; a gateway before it may do so in the header. */
function retryDelay(cause: UpstreamRefusal | UpstreamFailure): number | undefined {
  const body = cause instanceof UpstreamRefusal ? cause.body : JSON.stringify(cause.body);
  const seconds = /"retryDelay"\s*:\s*"(\d+(?:\.\d+)?)s"/.exec(body)?.[1];
  if (seconds !== undefined) return Math.ceil(Number(seconds));
  return cause instanceof UpstreamRefusal ? readRetryAfter(cause.headers) : undefined;
}
