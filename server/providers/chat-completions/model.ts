/** Any server of OpenAI's Chat Completions API: LiteLLM, vLLM, llama.cpp, Ollama, Gemini, … */

import { createProvider } from "../create-provider.ts";
import type { UpstreamRefusal } from "../failures.ts";
import type { Model, ModelRequest, ModelSetup, Provider, ProviderSetup } from "../provider.ts";
import { type ApiAddress, openAiClient, type Sending } from "../transport/fetch.ts";
import { streamEvents, withExtraBody } from "../transport/request.ts";
import {
  type ChatDialect,
  learnHistory,
  learnSetting,
  NO_QUIRKS,
  PLAIN_DIALECT,
  provenSettings,
  type Quirks,
  type SentMessage,
  type SettingQuirks,
} from "./dialect.ts";
import { sentMessages } from "./messages.ts";
import { ChatReader } from "./reader.ts";

/** A model of such a server, and how the server differs from others. */
export interface ChatCompletionsOptions extends Omit<ProviderSetup, "settings" | "loadPackage">, ApiAddress {
  dialect?: ChatDialect;
}

export function createChatCompletions(options: ChatCompletionsOptions): Provider {
  return createProvider(options, "conversation_history", chatModel(options));
}

function chatModel(options: ChatCompletionsOptions): Model {
  const { dialect = PLAIN_DIALECT } = options;
  const post = openAiClient(options);
  /** What was learned about the server, for all runs. */
  let shared: Partial<SettingQuirks> = {};
  /** What was learned in one run: its history comes from the client, and must not affect other clients' requests. */
  const learned = new WeakMap<ModelSetup, Partial<Quirks>>();

  return (request, signal) => {
    const { setup, messages, observer } = request;
    // A copy for this request: others may learn at the same time.
    let quirks: Quirks = { ...NO_QUIRKS, ...shared, ...learned.get(setup) };
    let body = requestBody(options, request, dialect, quirks);
    let settings: Partial<SettingQuirks> | undefined;
    const sent = {
      setup: options,
      explain: dialect.explain,
      observer,
      send: (sending: Sending) => post("/chat/completions", body, sending),
      adapt: (refusal: UpstreamRefusal) => {
        const setting = learnSetting(refusal, quirks, body, dialect);
        const news = setting ?? learnHistory(refusal, quirks, body.messages);
        if (news === undefined) return false;
        if (setting !== undefined) settings = { ...settings, ...setting };
        learned.set(setup, { ...learned.get(setup), ...news });
        quirks = { ...quirks, ...news };
        body = requestBody(options, request, dialect, quirks);
        return true;
      },
    };
    const keep: ModelRequest["keep"] = (message) => {
      // The server accepted the changed request: the refusal was true, unless it only quoted the conversation.
      if (settings !== undefined) shared = { ...shared, ...provenSettings(settings, messages) };
      request.keep(message);
    };
    return streamEvents(sent, () => new ChatReader({ ...request, keep }, dialect.thinkTags), signal);
  };
}

function requestBody(
  { model, mediaTypes, modelSettings }: ChatCompletionsOptions,
  { setup, messages }: ModelRequest,
  dialect: ChatDialect,
  quirks: Quirks,
) {
  const { instructions, tools } = setup;
  const system: SentMessage[] = instructions === "" ? [] : [{ role: "system", content: instructions }];
  const functions = tools.map(({ name, description, parameters }) => ({
    type: "function",
    function: { name, description, parameters: dialect.parameters(parameters) },
  }));
  const body = {
    model,
    ...(functions.length === 0 ? {} : { tools: functions }),
    ...(quirks.usage ? { stream_options: { include_usage: true } } : {}),
    stream: true,
  };
  return {
    ...withExtraBody(body, dialect.settings(modelSettings, quirks)),
    messages: [...system, ...sentMessages(messages, { dialect, mediaTypes, quirks })],
  };
}
