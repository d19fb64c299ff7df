/**
 * OpenAI's Responses API. OpenAI stores the conversation, and the state is the id of its last response. With
 * `store: false` it stores nothing, and the state is the whole history.
 */

import { requireSetting } from "../../config/settings.ts";
import { ConfigError } from "../../errors.ts";
import { createProvider } from "../create-provider.ts";
import { blamesParameter, type UpstreamRefusal } from "../failures.ts";
import { mayBeQuoted } from "../history.ts";
import type { Model, ModelRequest, Provider, ProviderSetup } from "../provider.ts";
import { openAiClient, type PostStream, type Sending } from "../transport/fetch.ts";
import { streamEvents, withExtraBody } from "../transport/request.ts";
import { type InputItem, toInput, withoutReasoning } from "./input.ts";
import { type HostedTools, ResponsesReader } from "./reader.ts";

/** The row `openai/NAME`. `tools` reads the calls of tools that OpenAI runs, if any may be used. @throws ConfigError */
export function createOpenAi(setup: ProviderSetup, tools: HostedTools | undefined): Provider {
  const { settings, modelSettings } = setup;
  const apiKey = requireSetting(setup, "openaiKey", "a key of your OpenAI account");
  if (modelSettings.extraBody !== undefined && "store" in modelSettings.extraBody) {
    throw new ConfigError(
      "extraBody.store would break the state of every conversation: set store of the agent instead.",
    );
  }
  const stateKind = modelSettings.store === false ? "conversation_history" : "previous_response_id";
  const { openaiUrl: baseURL, openaiOrganization: organization, openaiProject: project } = settings;
  const post = openAiClient({ baseURL, apiKey, organization, project });
  return createProvider(setup, stateKind, responsesModel(setup, post, tools));
}

/** What a refusal may change about a request. */
interface RequestShape {
  input: readonly InputItem[];
  /** Whether the request asks for summaries of the reasoning. */
  summary: boolean;
  /** Whether the request asks for the reasoning in encrypted form. */
  encrypted: boolean;
}

function responsesModel(setup: ProviderSetup, post: PostStream, tools: HostedTools | undefined): Model {
  const store = setup.modelSettings.store !== false;
  /**
   * Changed by refusals: some models, and accounts that are not verified, refuse a request for summaries, and models
   * that do not reason have nothing to encrypt.
   */
  let takes = { summary: isReasoningModel(setup.model), encrypted: isReasoningModel(setup.model) && !store };

  return (request, signal) => {
    // A copy for this request: other conversations may learn at the same time.
    let shape: RequestShape = { input: toInput(request.messages), ...takes };
    let proven: Partial<typeof takes> = {};
    const sent = {
      setup,
      observer: request.observer,
      send: (sending: Sending) => post("/responses", responsesBody(setup, request, shape, tools), sending),
      adapt: (refusal: UpstreamRefusal) => {
        const change = withoutRefused(shape, refusal);
        if (change === undefined) return false;
        shape = { ...shape, ...change };
        const { input: _own, ...refused } = change;
        if (!mayBeQuote(refusal, request)) proven = { ...proven, ...refused };
        return true;
      },
    };
    const keep: ModelRequest["keep"] = (message, kept) => {
      // The API accepted the changed request: later ones use what was learned.
      takes = { ...takes, ...proven };
      request.keep(message, kept);
    };
    return streamEvents(sent, () => new ResponsesReader({ ...request, keep }, tools), signal);
  };
}

/** Leaves out what the refusal blames; `undefined`: nothing can be left out. */
function withoutRefused(shape: RequestShape, refusal: UpstreamRefusal): Partial<RequestShape> | undefined {
  const { code, text } = refusal.detail;
  if (code === "invalid_encrypted_content") {
    // Another account or model cannot decrypt the reasoning in the history. The conversation goes on without it.
    const input = withoutReasoning(shape.input);
    if (input !== undefined) return { input };
  }
  if (shape.encrypted && /encrypted/i.test(text)) return { encrypted: false };
  if (shape.summary && blamesParameter(refusal, "reasoning")) return { summary: false };
  return undefined;
}

/** Whether a refusal may be quoting the visitor. What the API has stored of the conversation is not known here. */
function mayBeQuote({ detail: { param } }: UpstreamRefusal, { messages, previousId }: ModelRequest): boolean {
  if (/^(?:include|reasoning)\b/.test(param)) return false;
  return previousId !== undefined || mayBeQuoted(/encrypted|reasoning/i, messages);
}

function responsesBody(
  { model, modelSettings }: ProviderSetup,
  { setup, previousId }: ModelRequest,
  { input, summary, encrypted }: RequestShape,
  hosted: HostedTools | undefined,
): object {
  const { reasoningEffort, temperature, maxOutputTokens, extraBody, hostedTools = [], store = true } = modelSettings;
  const tools = [...setup.tools.map((tool) => ({ type: "function", ...tool, strict: false })), ...hostedTools];
  const include = [
    ...hostedTools.map(({ type }) => hosted?.HOSTED_TOOLS[type].include),
    ...(encrypted ? ["reasoning.encrypted_content"] : []),
  ];
  const reasoning = {
    // Without a request for summaries, a reasoning model does not show its thinking.
    ...(summary ? { summary: "auto" } : {}),
    ...(reasoningEffort === undefined ? {} : { effort: reasoningEffort }),
  };
  const body = {
    model,
    // The API does not carry instructions over from the previous response.
    ...(setup.instructions === "" ? {} : { instructions: setup.instructions }),
    input,
    ...(tools.length === 0 ? {} : { tools }),
    ...(include.length === 0 ? {} : { include }),
    ...(Object.keys(reasoning).length === 0 ? {} : { reasoning }),
    temperature,
    max_output_tokens: maxOutputTokens,
    previous_response_id: previousId,
    store,
    stream: true,
  };
  return withExtraBody(body, extraBody);
}

/** Whether a model of this name accepts `reasoning`. A wrong guess costs one refused request, and is remembered. */
function isReasoningModel(name: string): boolean {
  return /(?:^|[/:])(?:o\d|gpt-[5-9]|codex)(?!.*chat)/.test(name);
}
