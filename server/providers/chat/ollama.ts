import { mediaTypesOf } from "../capabilities.ts";
import { causeChain } from "../failures/failures.ts";
import { ProviderError } from "../failures/provider-error.ts";
import type { Provider, ProviderSetup } from "../provider.ts";
import { readBaseUrl } from "../settings.ts";
import { UpstreamFailure, UpstreamRefusal } from "../upstream/refusal.ts";
import { createChatCompletions } from "./create.ts";
import { type ChatDialect, PLAIN_DIALECT } from "./dialect.ts";

/** Models on one's own machine, through Ollama's OpenAI-compatible form. */
export function createOllama({ model, env, times, settings }: ProviderSetup): Provider {
  return createChatCompletions({
    id: "ollama",
    label: "Ollama",
    model,
    baseUrl: readBaseUrl(env, "OLLAMA_BASE_URL") ?? "http://127.0.0.1:11434/v1",
    apiKey: undefined,
    mediaTypes: mediaTypesOf("ollama"),
    times,
    settings,
    dialect: ollamaDialect(model),
  });
}

function ollamaDialect(model: string): ChatDialect {
  return {
    ...PLAIN_DIALECT,
    // The one field beyond OpenAI's that its messages have: openai/openai.go.
    takesBack: { message: new Set(["reasoning"]), call: new Set() },
    explain: (cause) => explain(model, cause),
  };
}

function explain(model: string, cause: unknown): ProviderError | undefined {
  if (causeChain(cause).includes("ECONNREFUSED")) {
    const message = "Ollama could not be reached: is it running?";
    return new ProviderError("provider_error", message, { cause });
  }
  if (!(cause instanceof UpstreamRefusal) && !(cause instanceof UpstreamFailure)) return undefined;
  const { text } = cause.detail;
  if (/model .* not found/i.test(text)) {
    const message = `Ollama does not have the model ${model} yet. Where it runs: ollama pull ${model}`;
    return new ProviderError("provider_error", message, { cause, retryable: false });
  }
  const lacking = /does not support (tools|thinking|vision|chat)\b/i.exec(text)?.[1];
  if (lacking !== undefined) {
    const message = `The model ${model} of Ollama does not support ${lacking}. Choose another one.`;
    return new ProviderError("provider_error", message, { cause, retryable: false });
  }
  return undefined;
}
