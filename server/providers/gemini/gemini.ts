import { mediaTypesOf } from "../capabilities.ts";
import { createChatCompletions } from "../chat/create.ts";
import { SetupError } from "../failures/provider-error.ts";
import type { Provider, ProviderSetup } from "../provider.ts";
import { readBaseUrl, readToken } from "../settings.ts";
import { MODEL_TAGS } from "../think-tags.ts";
import { geminiDialect } from "./dialect.ts";

/** Google's Gemini API, through its OpenAI-compatible form. */
export function createGemini({ model, env, times, settings }: ProviderSetup): Provider {
  const apiKey = readToken(env, "GEMINI_API_KEY");
  if (apiKey === undefined) {
    throw new SetupError(`model "gemini/${model}" needs GEMINI_API_KEY: set it to a key from Google AI Studio.`);
  }
  const label = "Gemini";
  return createChatCompletions({
    id: "gemini",
    label,
    model,
    baseUrl: readBaseUrl(env, "GEMINI_BASE_URL") ?? "https://generativelanguage.googleapis.com/v1beta/openai/",
    apiKey,
    mediaTypes: mediaTypesOf("gemini"),
    times,
    settings,
    dialect: geminiDialect({ label, model, thinkTags: MODEL_TAGS }),
  });
}
