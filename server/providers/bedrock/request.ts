/** The ConverseStream request of one model turn. */

import type { ConverseStreamCommandInput, Tool } from "@aws-sdk/client-bedrock-runtime";
import { ConfigError } from "../../errors.ts";
import type { HistoryMessage } from "../../protocol/chat.ts";
import { isRecord } from "../../protocol/json.ts";
import { lostTools } from "../claude/messages.ts";
import type { ModelRequest, ModelSettings, ToolSpec } from "../provider.ts";
import { withExtraBody } from "../transport/request.ts";
import { converseMessages } from "./messages.ts";
import type { BedrockEffort } from "./models.ts";

/** What is the same in each request. */
export interface BedrockModelSettings {
  model: string;
  settings: ModelSettings;
  effort: BedrockEffort;
  extra: BedrockExtra;
}

/** What the model has refused, and is therefore left out. */
export interface RequestShape {
  isForgotten(message: HistoryMessage): boolean;
  /** Whether the request asks the model to think. */
  thinks: boolean;
}

type Fields = Record<string, unknown>;

/** An agent's `extraBody`, by the part of the request that its fields belong to. */
export interface BedrockExtra {
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

/** @throws ConfigError when a field that holds others is no object */
export function splitExtra(extraBody: Readonly<Fields> = {}): BedrockExtra {
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

export function converseInput(
  { setup: { instructions, tools }, messages }: ModelRequest,
  { model, settings, effort, extra }: BedrockModelSettings,
  { isForgotten, thinks }: RequestShape,
): ConverseStreamCommandInput {
  const { temperature, maxOutputTokens: maxTokens = effort.maxTokens } = settings;
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
  const { $schema: _draft, ...schema } = parameters;
  const toolSpec = {
    name,
    // The API refuses an empty one.
    ...(description.trim() === "" ? {} : { description }),
    // A JSON Schema is JSON, which is what the package calls a document.
    inputSchema: { json: schema },
  };
  return { toolSpec } as Tool;
}
