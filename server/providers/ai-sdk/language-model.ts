/** A model object made with a package of the AI SDK. It is recognized by its shape: no package is imported. */

import { ConfigError } from "../../errors.ts";
import { isRecord } from "../../protocol/json.ts";

const VERSIONS = ["v2", "v3", "v4"] as const;

/** A language model of the AI SDK 5, 6 or 7, such as `anthropic("claude-sonnet-5")` of `@ai-sdk/anthropic`. */
export interface AiSdkLanguageModel {
  readonly specificationVersion: (typeof VERSIONS)[number];
  readonly provider: string;
  readonly modelId: string;
  doStream(options: never): PromiseLike<{ stream: ReadableStream<unknown> }>;
}

/** A model as a string for logs, traces and `/api/info`. */
export function modelName(model: string | AiSdkLanguageModel): string {
  return typeof model === "string" ? model : `${model.provider}/${model.modelId}`;
}

/** @throws ConfigError that says what to do */
export function checkLanguageModel(value: unknown, field: string): AiSdkLanguageModel {
  if (typeof value === "function") {
    throw new ConfigError(
      `${field} is a function. If it is a provider of the AI SDK, call it with a name: anthropic("claude-sonnet-5").`,
    );
  }
  if (!isRecord(value) || typeof value.specificationVersion !== "string") {
    throw new ConfigError(
      `${field} must be a string, such as "anthropic/claude-sonnet-5", or a language model of the AI SDK, such as anthropic("claude-sonnet-5").`,
    );
  }
  const { specificationVersion: version, provider, modelId } = value;
  if (!VERSIONS.some((known) => known === version)) {
    const advice =
      version === "v1"
        ? "Update its package to the one for AI SDK 5, 6 or 7"
        : "Install the version of its package for AI SDK 7";
    throw new ConfigError(
      `${field} is a model of the AI SDK with specification ${version}, but Parley takes ${VERSIONS.join(", ")}. ${advice}.`,
    );
  }
  if (typeof value.doStream !== "function") {
    throw new ConfigError(
      `${field} has no doStream, so it is no language model that can stream. Use one that can, such as anthropic("claude-sonnet-5").`,
    );
  }
  if (typeof provider !== "string" || typeof modelId !== "string") {
    throw new ConfigError(`${field} is a model of the AI SDK without provider or modelId. Set both to strings.`);
  }
  return value as unknown as AiSdkLanguageModel;
}
