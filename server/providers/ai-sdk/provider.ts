/** A model object of the AI SDK in a provider's place: its package sends and reads, retries and time limits are ours. */

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

/** What all versions of `doStream` take. */
function callOptions(
  model: AiSdkLanguageModel,
  setup: ModelObjectSetup,
  { setup: { instructions, tools }, messages }: ModelRequest,
  forgotten: ForgottenThinking,
): Record<string, unknown> {
  const { temperature, maxOutputTokens, reasoningEffort, providerOptions } = setup.modelSettings;
  // Several APIs refuse calls in the history without any tool.
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
    // A ping of the API is no part, but shows here: a model may think for minutes without a word.
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
  // Without a listener, the error of a stream that is not read to its end would end the process.
  stream.on("error", () => {});
  const headers = headersOf(result.response);
  if (!/^text\/html/i.test(headers.get("content-type") ?? "")) return { headers, stream };
  // A package finds no event in a page, and takes it for an answer that says nothing.
  stream.destroy();
  throw new UpstreamRefusal(200, headers, "");
}

function headersOf(response: unknown): Headers {
  const given = isRecord(response) && isRecord(response.headers) ? Object.entries(response.headers) : [];
  return new Headers(given.filter((entry): entry is [string, string] => typeof entry[1] === "string"));
}

/** Parts that say nothing of the answer. They only show that it goes on. */
const SIGNS_OF_LIFE = new Set(["raw", "ping", "stream-start", "response-metadata"]);

function readPart(part: Json): { event: string; data: Json }[] {
  const event = asString(part.type);
  if (SIGNS_OF_LIFE.has(event)) return [];
  // Only what begins an answer may come before a failure that leads to another try.
  if (event === "error" && !isUnknownPart(part.error)) throw upstreamError(part.error);
  return [{ event, data: part }];
}

// How the packages fail. Each copy of a package has classes of its own, so errors are known by their names.

/** A part of the answer was not what the package expects; mostly it is of a newer kind. */
const UNKNOWN_PARTS = new Set(["AI_TypeValidationError", "AI_InvalidResponseDataError"]);

/** Their messages quote the answer. */
const GARBAGE = new Set([...UNKNOWN_PARTS, "AI_JSONParseError", "AI_EmptyResponseBodyError"]);

/** Whether the answer may be complete without the part that this error replaces. */
function isUnknownPart(error: unknown): boolean {
  return error instanceof Error && UNKNOWN_PARTS.has(error.name);
}

/** What a package threw, or put into its stream, as an error that `failures.ts` has rules for. */
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
  // The error itself holds the whole request.
  return cause instanceof Error ? upstreamError(cause) : new UpstreamGarbage(message);
}

const NOT_SET_UP = new Set(["AI_LoadAPIKeyError", "AI_LoadSettingError"]);
const NOT_TAKEN = new Set(["AI_UnsupportedFunctionalityError", "AI_InvalidPromptError", "AI_InvalidArgumentError"]);

/** What only a package means by a failure, or the API behind it. `label`: the model's `provider`. */
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
  // What broke a stream.
  const known = upstreamError(cause);
  return known === cause ? undefined : toProviderError(label, known);
}
