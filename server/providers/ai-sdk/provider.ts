/** An AI SDK model object as a provider: its package sends and reads; Parley sets retries and time limits. */

import { Readable } from "node:stream";
import type { ReadableStream as NodeStream } from "node:stream/web";
import type { ApiError } from "../../protocol/errors.ts";
import { asString, isRecord, type Json } from "../../protocol/json.ts";
import { nameSubject } from "../anthropic/provider.ts";
import { ForgottenThinking, lostTools } from "../claude/messages.ts";
import { createProvider } from "../create-provider.ts";
import { providerError, toProviderError, UpstreamFailure, UpstreamGarbage, UpstreamRefusal } from "../failures.ts";
import { geminiFailure } from "../gemini/gemini.ts";
import type { Model, ModelRequest, Provider, ProviderSetup } from "../provider.ts";
import type { Sending, StreamedAnswer } from "../transport/fetch.ts";
import { streamEvents } from "../transport/request.ts";
import type { AiSdkLanguageModel } from "./language-model.ts";
import { promptOf, withReasoning } from "./prompt.ts";
import { PartReader } from "./reader.ts";

export type ModelObjectSetup = Pick<ProviderSetup, "mediaTypes" | "modelSettings" | "limits" | "clock">;

export function createModelObject(model: AiSdkLanguageModel, setup: ModelObjectSetup): Provider {
  const { provider: id } = model;
  const facts = { id, label: id, mediaTypes: setup.mediaTypes };
  return createProvider(
    facts,
    "conversation_history",
    objectModel(model, { ...setup, id, label: id, model: model.modelId }),
  );
}

function objectModel(
  model: AiSdkLanguageModel,
  setup: ModelObjectSetup & Pick<ProviderSetup, "id" | "label" | "model">,
): Model {
  const forgotten = new ForgottenThinking();
  return (request, signal) => {
    const sent = {
      setup,
      observer: request.observer,
      send: (sending: Sending) => send(model, callOptions(model, setup, request, forgotten), sending),
      decoder: () => readPart,
      explain: (cause: unknown) => explainFailure(setup.label, cause),
      adapt: (refusal: UpstreamRefusal) =>
        forgotten.adapt(refusal, withReasoning(request.messages, model.provider), { thinks: false }),
    };
    return streamEvents(sent, () => new PartReader(model.provider, request), signal);
  };
}

/** The options that all versions of `doStream` accept. */
function callOptions(
  model: AiSdkLanguageModel,
  setup: ModelObjectSetup,
  { setup: { instructions, tools }, messages }: ModelRequest,
  forgotten: ForgottenThinking,
): Record<string, unknown> {
  const { temperature, maxOutputTokens, reasoningEffort, providerOptions } = setup.modelSettings;
  // Several APIs refuse a history with calls if the request declares no tool.
  const declared = tools.length > 0 ? tools : lostTools(messages);
  const functions = declared.map(({ name, description, parameters }) => {
    return { type: "function", name, description, inputSchema: parameters };
  });
  return {
    prompt: promptOf(instructions, messages, {
      model,
      mediaTypes: setup.mediaTypes,
      isForgotten: (message) => forgotten.has(message),
    }),
    ...(functions.length === 0 ? {} : { tools: functions, toolChoice: { type: "auto" } }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    ...(reasoningEffort === undefined ? {} : { reasoning: reasoningEffort }),
    ...(providerOptions === undefined ? {} : { providerOptions }),
    // An API's pings show only as raw chunks: a model may think for minutes without other output.
    includeRawChunks: true,
  };
}

async function send(
  model: AiSdkLanguageModel,
  options: Record<string, unknown>,
  { signal, onSent }: Sending,
): Promise<StreamedAnswer> {
  onSent?.({ body: options });
  let result: Json;
  try {
    result = (await model.doStream({ ...options, abortSignal: signal } as never)) as unknown as Json;
  } catch (error) {
    throw upstreamError(error);
  }
  if (!(result.stream instanceof ReadableStream)) throw new UpstreamGarbage("doStream returned no ReadableStream");
  const stream = Readable.fromWeb(result.stream as NodeStream, { objectMode: true });
  // Without a listener, an error of a stream that is not read to its end would crash the process.
  stream.on("error", () => {});
  const headers = headersOf(result.response);
  if (!/^text\/html/i.test(headers.get("content-type") ?? "")) return { headers, stream };
  // A package finds no event in an HTML page, and would report an empty answer.
  stream.destroy();
  throw new UpstreamRefusal(200, headers, "");
}

function headersOf(response: unknown): Headers {
  const given = isRecord(response) && isRecord(response.headers) ? Object.entries(response.headers) : [];
  return new Headers(given.filter((entry): entry is [string, string] => typeof entry[1] === "string"));
}

/** Parts without content: they only show that the answer is still in progress. */
const SIGNS_OF_LIFE = new Set(["raw", "ping", "stream-start", "response-metadata"]);

function readPart(part: Json): { event: string; data: Json }[] {
  const event = asString(part.type);
  if (SIGNS_OF_LIFE.has(event)) return [];
  // Thrown before the reader gets the part: what it reads counts as an answer that has begun, and stops retries.
  if (event === "error" && !isUnknownPart(part.error)) throw upstreamError(part.error);
  return [{ event, data: part }];
}

// Failures of the packages. Each copy of a package has its own classes, so errors are recognized by their names.

/** Errors for a part of the answer that the package does not expect; mostly it is of a newer kind. */
const UNKNOWN_PARTS = new Set(["AI_TypeValidationError", "AI_InvalidResponseDataError"]);

/** Errors whose messages quote the answer, so that only their names are reported. */
const GARBAGE = new Set([...UNKNOWN_PARTS, "AI_JSONParseError", "AI_EmptyResponseBodyError"]);

/** Whether the answer may be complete without the part that this error replaces. */
function isUnknownPart(error: unknown): boolean {
  return error instanceof Error && UNKNOWN_PARTS.has(error.name);
}

/** Turns what a package threw, or put into its stream, into an error that `failures.ts` has rules for. */
function upstreamError(thrown: unknown): unknown {
  if (!(thrown instanceof Error)) {
    return new UpstreamFailure(isRecord(thrown) && !("error" in thrown) ? { error: thrown } : thrown);
  }
  const { name, message, cause } = thrown;
  const { statusCode: status, responseHeaders, responseBody } = thrown as unknown as Json;
  if (typeof status === "number" && status >= 300) {
    const headers = new Headers(isRecord(responseHeaders) ? (responseHeaders as Record<string, string>) : {});
    return new UpstreamRefusal(status, headers, asString(responseBody) || JSON.stringify({ message }));
  }
  if (GARBAGE.has(name)) return new UpstreamGarbage(`the package reports an ${name}`);
  if (name !== "AI_APICallError") return thrown;
  // Only the cause is used: the error itself contains the whole request.
  return cause instanceof Error ? upstreamError(cause) : new UpstreamGarbage(message);
}

const NOT_SET_UP = new Set(["AI_LoadAPIKeyError", "AI_LoadSettingError"]);
const NOT_TAKEN = new Set(["AI_UnsupportedFunctionalityError", "AI_InvalidPromptError", "AI_InvalidArgumentError"]);

/** Explains failures that only a package, or the API behind it, has. `label`: the model's `provider`. */
function explainFailure(label: string, cause: unknown): ApiError | undefined {
  if (cause instanceof UpstreamRefusal && label.startsWith("anthropic")) nameSubject(cause.detail);
  if (label.startsWith("google")) {
    const failure = geminiFailure(label, cause);
    if (failure !== undefined) return failure;
  }
  if (!(cause instanceof Error)) return undefined;
  const { name, message } = cause;
  if (NOT_SET_UP.has(name)) return providerError("provider_auth", `${label} is not set up: ${message}`, { cause });
  if (NOT_TAKEN.has(name)) {
    const detail = `The package of ${label} does not take this message: ${message}`;
    return providerError("invalid_request", detail, { cause, retryable: false });
  }
  // An error that broke off the stream.
  const known = upstreamError(cause);
  return known === cause ? undefined : toProviderError(label, known);
}
