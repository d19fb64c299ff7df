/** The table of providers. A new one is a file and a row. */

import { createChatCompletions } from "./chat-completions.ts";
import { createDemoProvider } from "./demo.ts";
import type { Provider, ProviderSetup } from "./provider.ts";
import { SetupError } from "./provider-error.ts";
import { createResponses } from "./responses.ts";
import { readBaseUrl, readToken } from "./settings.ts";

interface ProviderRow {
  /** How a model string that means this row looks, for sentences. */
  form: string;
  create(setup: ProviderSetup): Provider | Promise<Provider>;
}

const PROVIDERS: ReadonlyMap<string, ProviderRow> = new Map([
  ["openai", { form: "openai/NAME", create: createOpenAi }],
  ["litellm", { form: "litellm/NAME", create: createLiteLlm }],
  ["compatible", { form: "compatible/NAME", create: createCompatible }],
  ["demo", { form: "demo", create: createDemoProvider }],
]);

/**
 * The provider that a model string such as "openai/gpt-5.2" means, ready to serve. A bare name is one of
 * OpenAI's. Rejects with a
 * `SetupError` for an unknown provider and for a missing or wrong setting.
 */
export async function resolveProvider(
  model: string,
  setup: Omit<ProviderSetup, "model">,
): Promise<Provider> {
  const [prefix, name] = splitModel(model.trim());
  const row = PROVIDERS.get(prefix);
  if (row === undefined) {
    const known = [...PROVIDERS.values()].map(({ form }) => form).join(", ");
    throw new SetupError(`model "${model}" names no known provider. Use one of: ${known}.`);
  }
  if (name === "") throw new SetupError(`model "${model}" names no model. Use ${row.form}.`);
  return row.create({ ...setup, model: name });
}

function splitModel(model: string): [prefix: string, name: string] {
  const slash = model.indexOf("/");
  if (slash !== -1) return [model.slice(0, slash), model.slice(slash + 1)];
  return model === "demo" ? ["demo", "demo"] : ["openai", model];
}

function createOpenAi({ model, env, times, settings }: ProviderSetup): Provider {
  const apiKey = readToken(env, "OPENAI_API_KEY");
  if (apiKey === undefined) {
    throw new SetupError(
      `model "${model}" needs OPENAI_API_KEY: set it to a key of your OpenAI account.`,
    );
  }
  return createResponses({
    id: "openai",
    label: "OpenAI",
    model,
    baseUrl: readBaseUrl(env, "OPENAI_BASE_URL") ?? "https://api.openai.com/v1",
    apiKey,
    organization: readToken(env, "OPENAI_ORG_ID"),
    project: readToken(env, "OPENAI_PROJECT_ID"),
    times,
    settings,
  });
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
    baseUrl,
    apiKey: readToken(env, "COMPATIBLE_API_KEY"),
    times,
    settings,
  });
}
