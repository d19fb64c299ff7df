import { SetupError } from "../failures/provider-error.ts";
import type { Provider, ProviderSetup } from "../provider.ts";
import { readBaseUrl, readToken } from "../settings.ts";
import { createResponses } from "./responses.ts";

/** OpenAI itself, through its Responses API. */
export function createOpenAi({ model, env, times, settings }: ProviderSetup): Provider {
  const apiKey = readToken(env, "OPENAI_API_KEY");
  if (apiKey === undefined) {
    throw new SetupError(`model "openai/${model}" needs OPENAI_API_KEY: set it to a key of your OpenAI account.`);
  }
  if (settings.extraBody !== undefined && "store" in settings.extraBody) {
    throw new SetupError(
      "extraBody.store would break the state of every conversation: set store of the agent instead.",
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
