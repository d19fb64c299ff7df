/** A model on AWS Bedrock, over ConverseStream: the only API there that all models with tools support. */

import type { ConverseStreamCommandInput, Tool } from "@aws-sdk/client-bedrock-runtime";
import { ConfigError } from "../../errors.ts";
import type { HistoryMessage } from "../../protocol/chat.ts";
import { isRecord } from "../../protocol/json.ts";
import { ForgottenThinking, lostTools } from "../claude/messages.ts";
import { createProvider } from "../create-provider.ts";
import { UpstreamRefusal } from "../failures.ts";
import type { Model, ModelRequest, Provider, ProviderSetup, ToolSpec } from "../provider.ts";
import { requestStream, type Sending } from "../transport/fetch.ts";
import { streamEvents, withExtraBody } from "../transport/request.ts";
import { type BedrockPackage, createBedrockClient, type SignRequest } from "./client.ts";
import { EventStreamParser } from "./event-stream.ts";
import { explainFailure, namedRefusal } from "./failures.ts";
import { converseMessages, thinkingMessages } from "./messages.ts";
import { type BedrockEffort, bedrockEffort, makerOf } from "./models.ts";
import { BedrockReader } from "./reader.ts";

/** The row `bedrock/NAME`. @throws ConfigError */
export async function createBedrock(setup: ProviderSetup): Promise<Provider> {
  const { model, settings, modelSettings, loadPackage } = setup;
  const same = { effort: bedrockEffort(model, modelSettings), extra: splitExtra(modelSettings.extraBody) };
  const sdk = (await loadPackage("@aws-sdk/client-bedrock-runtime")) as BedrockPackage;
  const sign = await createBedrockClient(sdk, model, settings);
  return createProvider(setup, "conversation_history", converseModel(setup, same, sign));
}

/** The fields that are the same in all requests. */
interface SameFields {
  effort: BedrockEffort;
  extra: BedrockExtra;
}

/** Parts of a request that are left out once the model has refused them. */
interface RequestShape {
  isForgotten(message: HistoryMessage): boolean;
  /** Whether the request asks the model to think. */
  thinks: boolean;
}

function converseModel(setup: ProviderSetup, same: SameFields, sign: SignRequest): Model {
  const forgotten = new ForgottenThinking();
  return (request, signal) => {
    const shape: RequestShape = {
      isForgotten: (message) => forgotten.has(message),
      thinks: same.effort.fields.thinking !== undefined,
    };
    const sent = {
      setup,
      observer: request.observer,
      send: async (sending: Sending) => {
        const { url, ...signed } = await sign(converseInput(setup, request, same, shape));
        try {
          return await requestStream(url, { ...signed, ...sending }, "application/vnd.amazon.eventstream");
        } catch (error) {
          throw error instanceof UpstreamRefusal ? namedRefusal(error) : error;
        }
      },
      explain: explainFailure,
      decoder: () => {
        const parser = new EventStreamParser();
        return (packet: Buffer) => parser.push(packet);
      },
      adapt: (refusal: UpstreamRefusal) =>
        forgotten.adapt(refusal, thinkingMessages(request.messages, makerOf(setup.model)), shape),
    };
    return streamEvents(sent, () => new BedrockReader(request, setup.model), signal);
  };
}

type Fields = Record<string, unknown>;

/** An agent's `extraBody`, by the part of the request that its fields belong to. */
interface BedrockExtra {
  converse: Fields;
  inferenceConfig: Fields;
  modelFields: Fields;
}

/** Fields of Converse itself that `extraBody` may set. Every other field is one of the model's. */
const CONVERSE_FIELDS = new Set([
  "additionalModelResponseFieldPaths",
  "guardrailConfig",
  "outputConfig",
  "performanceConfig",
  "promptVariables",
  "requestMetadata",
  "serviceTier",
]);

/** @throws ConfigError when `inferenceConfig` or `additionalModelRequestFields` is not an object */
function splitExtra(extraBody: Readonly<Fields> = {}): BedrockExtra {
  const { inferenceConfig, additionalModelRequestFields, ...rest } = extraBody;
  const fields = Object.entries(rest);
  return {
    converse: Object.fromEntries(fields.filter(([name]) => CONVERSE_FIELDS.has(name))),
    inferenceConfig: objectOf("inferenceConfig", inferenceConfig),
    modelFields: {
      ...Object.fromEntries(fields.filter(([name]) => !CONVERSE_FIELDS.has(name))),
      ...objectOf("additionalModelRequestFields", additionalModelRequestFields),
    },
  };
}

function objectOf(name: string, value: unknown = {}): Fields {
  if (isRecord(value)) return value;
  throw new ConfigError(`extraBody.${name} must be an object.`);
}

function converseInput(
  { model, modelSettings }: ProviderSetup,
  { setup: { instructions, tools }, messages }: ModelRequest,
  { effort, extra }: SameFields,
  { isForgotten, thinks }: RequestShape,
): ConverseStreamCommandInput {
  const { temperature, maxOutputTokens: maxTokens = effort.maxTokens } = modelSettings;
  const inference = {
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...(temperature === undefined ? {} : { temperature }),
    ...extra.inferenceConfig,
  };
  const { thinking, ...plain } = effort.fields;
  const fields = thinks && thinking !== undefined ? { thinking, ...plain } : plain;
  const additional = withExtraBody(fields, extra.modelFields);
  const declared = tools.length > 0 ? tools : lostTools(messages);
  // The author's own fields are sent as they are: the package serializes those that it knows.
  return {
    modelId: model,
    messages: converseMessages(messages, model, isForgotten),
    ...(instructions.trim() === "" ? {} : { system: [{ text: instructions }] }),
    ...(declared.length === 0 ? {} : { toolConfig: { tools: declared.map(converseTool) } }),
    ...(Object.keys(inference).length === 0 ? {} : { inferenceConfig: inference }),
    ...(Object.keys(additional).length === 0 ? {} : { additionalModelRequestFields: additional }),
    ...extra.converse,
  } as ConverseStreamCommandInput;
}

function converseTool({ name, description, parameters }: ToolSpec): Tool {
  const toolSpec = {
    name,
    // The API refuses an empty description.
    ...(description.trim() === "" ? {} : { description }),
    // A JSON Schema is JSON, which is what the package calls a document.
    inputSchema: { json: parameters },
  };
  return { toolSpec } as Tool;
}
