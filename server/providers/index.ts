/**
 * The table of providers, with the files and settings that each accepts. A provider of Chat Completions is a row here
 * and its settings in config/settings.ts; a provider with its own API also has a folder.
 */

import { nearestName } from "../config/nearest-name.ts";
import { checkSettings, type ProviderSettingKey, requireSetting, type Settings } from "../config/settings.ts";
import { ConfigError } from "../errors.ts";
import {
  ALL_MEDIA_TYPES,
  type FileType,
  isMediaType,
  listMediaTypes,
  type MediaType,
} from "../protocol/attachments.ts";
import { type AiSdkLanguageModel, modelName } from "./ai-sdk/language-model.ts";
import type { ChatCompletionsOptions } from "./chat-completions/model.ts";
import { createProvider } from "./create-provider.ts";
import type { ModelSettings, Provider, ProviderSetup, TransportLimits } from "./provider.ts";

interface ProviderRow {
  /** The provider's name in sentences for the operator. */
  readonly label: string;
  /** Which files can be attached. A single model may accept fewer, and refuse the rest. */
  readonly mediaTypes: readonly MediaType[];
  /** The settings of an agent that apply to its models; any other one keeps the server from starting. */
  readonly modelSettings: readonly (keyof ModelSettings)[];
  /** The server's settings that this provider reads. */
  readonly settings: readonly ProviderSettingKey[];
  /** Loads the provider's code on demand: a server uses only one or two providers. */
  create(setup: ProviderSetup): Promise<Provider>;
}

const JPEG_PNG_WEBP = ["image/jpeg", "image/png", "image/webp"] as const;

const SAMPLING = ["reasoningEffort", "temperature", "maxOutputTokens", "extraBody"] as const;

const AWS_KEYS = ["awsBearerToken", "awsProfile", "awsAccessKeyId", "awsSecretAccessKey", "awsSessionToken"] as const;

const LITELLM_URL = "the address of your LiteLLM proxy, such as http://127.0.0.1:4000";
const COMPATIBLE_URL = "the address of the Chat Completions API, such as http://127.0.0.1:8000/v1";

const PROVIDERS = {
  openai: {
    label: "OpenAI",
    mediaTypes: ALL_MEDIA_TYPES,
    modelSettings: [...SAMPLING, "store", "hostedTools"],
    settings: ["openaiKey", "openaiUrl", "openaiOrganization", "openaiProject"],
    create: async (setup) => {
      const { hostedTools, extraBody } = setup.modelSettings;
      // `extraBody` may ask for tools that OpenAI runs, too, such as those of an MCP server.
      const tools = hostedTools || extraBody ? await import("./openai/hosted-tools.ts") : undefined;
      return (await import("./openai/provider.ts")).createOpenAi(setup, tools);
    },
  },
  litellm: {
    label: "LiteLLM",
    mediaTypes: ALL_MEDIA_TYPES,
    modelSettings: SAMPLING,
    settings: ["litellmUrl", "litellmKey"],
    create: async (setup) =>
      createChatCompletions({
        ...setup,
        baseURL: requireSetting(setup, "litellmUrl", LITELLM_URL),
        apiKey: setup.settings.litellmKey,
      }),
  },
  anthropic: {
    label: "Anthropic",
    mediaTypes: ALL_MEDIA_TYPES,
    modelSettings: SAMPLING,
    settings: ["anthropicKey", "anthropicUrl"],
    create: async (setup) => (await import("./anthropic/provider.ts")).createAnthropic(setup),
  },
  gemini: {
    label: "Gemini",
    mediaTypes: [...JPEG_PNG_WEBP, "application/pdf"],
    modelSettings: SAMPLING,
    settings: ["geminiKey", "geminiUrl"],
    create: async (setup) => (await import("./gemini/gemini.ts")).createGemini(setup),
  },
  vertex: {
    label: "Vertex AI",
    mediaTypes: [...JPEG_PNG_WEBP, "application/pdf"],
    modelSettings: SAMPLING,
    settings: ["googleProject", "googleLocation", "googleCredentials", "vertexToken", "vertexUrl"],
    create: async (setup) => (await import("./gemini/vertex.ts")).createVertex(setup),
  },
  ollama: {
    label: "Ollama",
    mediaTypes: JPEG_PNG_WEBP,
    modelSettings: SAMPLING,
    settings: ["ollamaUrl"],
    create: async (setup) => {
      const { ollamaDialect } = await import("./chat-completions/dialect.ts");
      const dialect = ollamaDialect(setup.model);
      return createChatCompletions({ ...setup, baseURL: setup.settings.ollamaUrl, apiKey: "", dialect });
    },
  },
  bedrock: {
    label: "AWS Bedrock",
    mediaTypes: ALL_MEDIA_TYPES,
    modelSettings: SAMPLING,
    settings: ["awsRegion", ...AWS_KEYS, "bedrockUrl"],
    create: async (setup) => (await import("./bedrock/provider.ts")).createBedrock(setup),
  },
  compatible: {
    label: "The model server",
    mediaTypes: ALL_MEDIA_TYPES,
    modelSettings: SAMPLING,
    settings: ["compatibleUrl", "compatibleKey"],
    create: async (setup) =>
      createChatCompletions({
        ...setup,
        baseURL: requireSetting(setup, "compatibleUrl", COMPATIBLE_URL),
        apiKey: setup.settings.compatibleKey,
      }),
  },
  demo: {
    label: "The demo",
    mediaTypes: ALL_MEDIA_TYPES,
    modelSettings: [],
    settings: [],
    create: async (setup) => createProvider(setup, "conversation_history", (await import("./demo/demo.ts")).demoModel),
  },
} as const satisfies Record<string, ProviderRow>;

async function createChatCompletions(options: ChatCompletionsOptions): Promise<Provider> {
  return (await import("./chat-completions/model.ts")).createChatCompletions(options);
}

/** A provider's name: the first part of a model string. */
export type ProviderId = keyof typeof PROVIDERS;

/** The table for tests and docs. */
export const PROVIDER_ROWS: Readonly<Record<ProviderId, ProviderRow>> = PROVIDERS;

/** The provider name of every model object, for comparisons and for sentences. */
const OBJECTS = "the AI SDK";

/** The settings of an agent that apply to model objects. Those with specification v4 also accept `reasoningEffort`. */
const OBJECT_SETTINGS: readonly (keyof ModelSettings)[] = ["temperature", "maxOutputTokens", "providerOptions"];

export interface ResolveOptions extends Pick<ProviderSetup, "settings" | "modelSettings" | "loadPackage"> {
  /** Which files the agent accepts: AI SDK models are assumed to accept them, other providers must do so. */
  accepts?: readonly FileType[] | undefined;
}

/**
 * The provider of an agent: that of its model or, if it has fallback models, one that combines all of them in their
 * order. Rejects with a `ConfigError` as `resolveProvider` does.
 */
export async function resolveModels(
  models: readonly (string | AiSdkLanguageModel)[],
  options: ResolveOptions,
): Promise<Provider> {
  const { modelSettings, accepts = [] } = options;
  const ids = models.map((model) => (typeof model === "string" ? readModel(model)[0] : OBJECTS));
  if (modelSettings.extraBody !== undefined && new Set(ids).size > 1) {
    throw new ConfigError(
      "extraBody has fields of one API, but fallbacks names models of others. Remove one of the two.",
    );
  }
  const [first, ...others] = await Promise.all(
    models.map(async (model, index) => {
      const own = { ...options, modelSettings: settingsFor(ids[index] ?? "", modelSettings, ids) };
      const provider = await (typeof model === "string" ? resolveProvider(model, own) : resolveObject(model, own));
      return { name: modelName(model), provider };
    }),
  );
  if (first === undefined) throw new Error("an agent has at least one model");
  for (const { name, provider } of [first, ...others]) {
    const refused = accepts.find((type) => isMediaType(type) && !provider.mediaTypes.includes(type));
    if (refused === undefined) continue;
    const taken = listMediaTypes(provider.mediaTypes);
    throw new ConfigError(`accepts names ${refused}, but ${name} takes ${taken} files alone. Remove it from accepts.`);
  }
  if (others.length === 0) return first.provider;
  const { withFallbacks } = await import("./fallbacks.ts");
  return withFallbacks(first, others);
}

/**
 * The provider that a model string such as "openai/gpt-5.2" means, ready to serve. Rejects with a `ConfigError` for an unknown
 * provider, and for a missing or wrong setting.
 */
export async function resolveProvider(
  model: string,
  { settings, modelSettings, loadPackage }: ResolveOptions,
): Promise<Provider> {
  const [id, name] = readModel(model);
  if (!isProviderId(id)) {
    throw new ConfigError(`model "${model}" names no known provider.${guess(model)} Use one of: ${knownForms()}.`);
  }
  const row = PROVIDER_ROWS[id];
  if (name === "") throw new ConfigError(`model "${model}" names no model. Use ${id}/NAME.`);
  for (const field of Object.keys(modelSettings) as (keyof ModelSettings)[]) {
    if (modelSettings[field] !== undefined) refuseUseless(id, field);
  }
  refuseExtraBody(modelSettings.extraBody);
  checkSettings(settings, row.settings);
  const { label, mediaTypes } = row;
  const limits = limitsOf(settings);
  return row.create({ id, label, mediaTypes, model: name, settings, modelSettings, limits, loadPackage });
}

/** The provider of a model object. Rejects with a `ConfigError` for a field of the agent that its package cannot take. */
async function resolveObject(
  model: AiSdkLanguageModel,
  { settings, modelSettings, accepts }: ResolveOptions,
): Promise<Provider> {
  const mediaTypes = accepts?.filter(isMediaType) ?? ALL_MEDIA_TYPES;
  for (const field of Object.keys(modelSettings) as (keyof ModelSettings)[]) {
    if (modelSettings[field] === undefined || takes(OBJECTS, field)) continue;
    if (field === "reasoningEffort" && model.specificationVersion === "v4") continue;
    throw new ConfigError(
      `${field} has no effect on ${modelName(model)}, a model of the AI SDK. Remove it, and set what its package takes in providerOptions.`,
    );
  }
  const { createModelObject } = await import("./ai-sdk/provider.ts");
  return createModelObject(model, { mediaTypes, modelSettings, limits: limitsOf(settings) });
}

function limitsOf({ firstChunkSeconds, idleSeconds }: Settings): TransportLimits {
  return { firstChunkMs: firstChunkSeconds * 1000, idleMs: idleSeconds * 1000 };
}

/** As `splitModel`, but the bare name of a provider gives an empty model name. */
function readModel(model: string): [id: string, name: string] {
  const [id, name] = splitModel(model);
  return id === "" && isProviderId(model.trim()) ? [name, ""] : [id, name];
}

function isProviderId(id: string): id is ProviderId {
  return Object.hasOwn(PROVIDERS, id);
}

function guess(model: string): string {
  const [given = "", name] = model.split(/\/(.*)/s);
  // Names of models in other products.
  const id = /^google\/|^gemini-/.test(model) ? "gemini" : /^claude-/.test(model) ? "anthropic" : undefined;
  if (id !== undefined) return didYouMean(`${id}/${name ?? given}`);
  if (/^gpt\d/.test(model)) return didYouMean(`openai/${model.replace("gpt", "gpt-")}`);
  const near = nearestName(given, Object.keys(PROVIDERS), name === undefined ? 1 : 2);
  if (near === undefined) return "";
  return didYouMean(near === "demo" ? near : `${near}/${name ?? "NAME"}`);
}

function didYouMean(model: string): string {
  return ` Did you mean "${model}"?`;
}

function knownForms(): string {
  return Object.keys(PROVIDERS)
    .map((id) => (id === "demo" ? id : `${id}/NAME`))
    .join(", ");
}

/** @throws ConfigError for a field of an agent that would do nothing */
function refuseUseless(id: ProviderId, field: keyof ModelSettings): void {
  if (takes(id, field)) return;
  const named = Object.keys(PROVIDERS).filter((other) => takes(other, field));
  const takers = named.length > 0 ? named : [OBJECTS];
  throw new ConfigError(`${field} has no effect on ${id} models. Remove it, or use a model of ${takers.join(" or ")}.`);
}

function takes(id: string, field: keyof ModelSettings): boolean {
  if (id === OBJECTS) return OBJECT_SETTINGS.includes(field);
  return isProviderId(id) && PROVIDER_ROWS[id].modelSettings.includes(field);
}

/**
 * The settings of an agent for one of its models. `store: false` and `providerOptions` are left out if they are for
 * another of them: most providers store nothing anyway, and `providerOptions` name the provider that they are for.
 */
function settingsFor(id: string, modelSettings: ModelSettings, ids: readonly string[]): ModelSettings {
  const isOfAnother = (field: keyof ModelSettings) => !takes(id, field) && ids.some((other) => takes(other, field));
  const { store, providerOptions, ...rest } = modelSettings;
  return {
    ...rest,
    ...(store === undefined || (store === false && isOfAnother("store")) ? {} : { store }),
    ...(providerOptions === undefined || isOfAnother("providerOptions") ? {} : { providerOptions }),
  };
}

/** Fields that `extraBody` must not set, and why. */
const REFUSED: ReadonlyMap<string, string> = new Map([
  ["model", "set model of the agent instead"],
  ["system", "set instructions of the agent instead"],
  ["instructions", "set instructions of the agent instead"],
  ["messages", "the messages are those of the conversation"],
  ["input", "the input is that of the conversation"],
  ["previous_response_id", "it is the state of the conversation"],
  ["conversation", "it would keep a state beside that of the conversation"],
  ["stream", "answers are always streamed"],
  ["n", "a message has one answer"],
]);

/** Refuses fields that would break every conversation. @throws ConfigError that names the field */
function refuseExtraBody(extraBody: Readonly<Record<string, unknown>> = {}): void {
  for (const name of Object.keys(extraBody)) {
    const reason = REFUSED.get(name);
    if (reason !== undefined) throw new ConfigError(`extraBody.${name} cannot be set: ${reason}.`);
  }
}

const OPENAI_NAME = /^(?:gpt-|chatgpt-|codex|computer-use|ft:|o\d)/;

/** Splits a model string like "openai/gpt-5.2". A bare name has the provider "openai" if it looks like OpenAI's, else "". */
export function splitModel(model: string): [id: string, name: string] {
  const given = model.trim();
  const slash = given.indexOf("/");
  if (slash !== -1) return [given.slice(0, slash), given.slice(slash + 1)];
  if (given === "demo") return ["demo", "demo"];
  return [OPENAI_NAME.test(given) ? "openai" : "", given];
}
