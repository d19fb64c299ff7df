/** The table of providers. A new one is a file and a row. */

import { isProviderId, mediaTypesOf, type ProviderId, refuseSettings, settingsFor } from "./capabilities.ts";
import { createChatCompletions } from "./chat/create.ts";
import { refuseExtraBody } from "./extra-body.ts";
import { SetupError } from "./failures/provider-error.ts";
import { HistoryProvider } from "./history/history.ts";
import { LateChatModel } from "./late-chat-model.ts";
import type { Provider, ProviderSetup } from "./provider.ts";
import { createOpenAi } from "./responses/openai.ts";
import { readBaseUrl, readToken } from "./settings.ts";

interface ProviderRow {
  /** How a model string that means this row looks, for sentences. */
  form: string;
  create(setup: ProviderSetup): Provider | Promise<Provider>;
}

/** What is imported above is read by every start; what fewer serve is read by theirs. */
const PROVIDERS: Readonly<Record<ProviderId, ProviderRow>> = {
  openai: { form: "openai/NAME", create: createOpenAi },
  litellm: { form: "litellm/NAME", create: createLiteLlm },
  anthropic: {
    form: "anthropic/NAME",
    create: async (setup) => (await import("./anthropic/anthropic.ts")).createAnthropic(setup),
  },
  gemini: {
    form: "gemini/NAME",
    create: async (setup) => (await import("./gemini/gemini.ts")).createGemini(setup),
  },
  vertex: {
    form: "vertex/NAME",
    create: async (setup) => (await import("./gemini/vertex.ts")).createVertex(setup),
  },
  ollama: {
    form: "ollama/NAME",
    create: async (setup) => (await import("./chat/ollama.ts")).createOllama(setup),
  },
  bedrock: {
    form: "bedrock/NAME",
    create: async (setup) => (await import("./bedrock/bedrock.ts")).createBedrock(setup),
  },
  compatible: { form: "compatible/NAME", create: createCompatible },
  demo: { form: "demo", create: createDemo },
};

/**
 * The one provider of an agent with fallback models: `withFallbacks` of what `resolveProvider` makes of each.
 * Each model gets the agent's settings. Rejects with a `SetupError` as `resolveProvider` does.
 */
export async function resolveModels(
  [first, ...others]: readonly [string, ...string[]],
  setup: Omit<ProviderSetup, "model">,
): Promise<Provider> {
  const ids = [first, ...others].map((model) => splitModel(model.trim())[0]);
  if (setup.settings.extraBody !== undefined && new Set(ids).size > 1) {
    throw new SetupError(
      "extraBody holds fields of one API, and fallbacks names models of others: remove one of the two.",
    );
  }
  const resolve = async (name: string) => {
    const settings = settingsFor(splitModel(name.trim())[0], setup.settings, ids);
    return { name, provider: await resolveProvider(name, { ...setup, settings }) };
  };
  const primary = await resolve(first);
  if (others.length === 0) return primary.provider;
  const { withFallbacks } = await import("./fallbacks.ts");
  return withFallbacks(primary, await Promise.all(others.map(resolve)));
}

/**
 * The provider that a model string such as "openai/gpt-5.2" means, ready to serve. A bare name is one of
 * OpenAI's. Rejects with a `SetupError` for an unknown provider and for a missing or wrong setting.
 */
export async function resolveProvider(model: string, setup: Omit<ProviderSetup, "model">): Promise<Provider> {
  const [prefix, name] = splitModel(model.trim());
  if (!isProviderId(prefix)) {
    const known = Object.values(PROVIDERS)
      .map(({ form }) => form)
      .join(", ");
    throw new SetupError(`model "${model}" names no known provider. Use one of: ${known}.`);
  }
  const row = PROVIDERS[prefix];
  if (name === "") throw new SetupError(`model "${model}" names no model. Use ${row.form}.`);
  refuseSettings(prefix, setup.settings);
  refuseExtraBody(setup.settings.extraBody);
  return row.create({ ...setup, model: name });
}

/** Provider and name that a model string means. */
export function splitModel(model: string): [prefix: string, name: string] {
  const slash = model.indexOf("/");
  if (slash !== -1) return [model.slice(0, slash), model.slice(slash + 1)];
  return model === "demo" ? ["demo", "demo"] : ["openai", model];
}

function createLiteLlm({ model, env, times, settings }: ProviderSetup): Provider {
  const baseUrl = readBaseUrl(env, "LITELLM_BASE_URL");
  if (baseUrl === undefined) {
    throw new SetupError(
      `model "litellm/${model}" needs LITELLM_BASE_URL: set it to the address of your LiteLLM proxy, such as http://127.0.0.1:4000.`,
    );
  }
  return createChatCompletions({
    id: "litellm",
    label: "LiteLLM",
    model,
    mediaTypes: mediaTypesOf("litellm"),
    baseUrl,
    apiKey: readToken(env, "LITELLM_API_KEY"),
    times,
    settings,
  });
}

function createCompatible({ model, env, times, settings }: ProviderSetup): Provider {
  const baseUrl = readBaseUrl(env, "COMPATIBLE_BASE_URL");
  if (baseUrl === undefined) {
    throw new SetupError(
      `model "compatible/${model}" needs COMPATIBLE_BASE_URL: set it to the address of the Chat Completions API, such as http://127.0.0.1:8000/v1.`,
    );
  }
  return createChatCompletions({
    id: "compatible",
    label: "The model server",
    model,
    mediaTypes: mediaTypesOf("compatible"),
    baseUrl,
    apiKey: readToken(env, "COMPATIBLE_API_KEY"),
    times,
    settings,
  });
}

function createDemo(): Provider {
  const model = new LateChatModel(async () => (await import("./demo/demo.ts")).demoModel);
  const facts = { id: "demo", label: "The demo", mediaTypes: mediaTypesOf("demo") };
  return new HistoryProvider(facts, model);
}
