import type { ConverseStreamCommandInput, Tool } from "@aws-sdk/client-bedrock-runtime";
import type { HistoryMessage } from "../../protocol/chat.ts";
import { isRecord } from "../../protocol/is-record.ts";
import type { ForgottenThinking } from "../anthropic/forgotten-thinking.ts";
import { withExtraBody } from "../extra-body.ts";
import { SetupError } from "../failures/provider-error.ts";
import { callsOf } from "../history/calls.ts";
import type { ChatModelRequest, ModelSettings, ToolSpec } from "../provider.ts";
import type { BedrockEffort } from "./effort.ts";
import { converseMessages } from "./messages.ts";
import { toolUseName } from "./names.ts";

/** What does not change from turn to turn. */
export interface BedrockModelSettings {
  model: string;
  settings: ModelSettings;
  effort: BedrockEffort;
  extra: BedrockExtra;
}

/** What of a request was refused. */
export interface RequestShape {
  /** Messages whose reasoning the model does not take back. */
  forgotten: Pick<ForgottenThinking, "has">;
  /** Whether the model may be told to think. */
  thinks: boolean;
}

type Fields = Record<string, unknown>;

/** An agent's `extraBody`, by the place where its fields belong. */
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

/** @throws SetupError when a field that holds others is no object */
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
  throw new SetupError(`extraBody.${name} must be an object.`);
}

/** The ConverseStream request of one model turn. */
export function converseInput(
  { instructions, tools, messages }: ChatModelRequest,
  { model, settings, effort, extra }: BedrockModelSettings,
  { forgotten, thinks }: RequestShape,
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
  const declared = [...tools, ...toolsOf(messages, tools)];
  // The author's own fields are as he wrote them: the package serializes what it knows of them.
  return {
    modelId: model,
    messages: converseMessages(messages, model, forgotten),
    ...(instructions.trim() === "" ? {} : { system: [{ text: instructions }] }),
    ...(declared.length === 0 ? {} : { toolConfig: { tools: declared.map(converseTool) } }),
    ...(Object.keys(inference).length === 0 ? {} : { inferenceConfig: inference }),
    ...(Object.keys(additional).length === 0 ? {} : { additionalModelRequestFields: additional }),
    ...extra.converse,
  } as ConverseStreamCommandInput;
}

/** Calls in the history are refused without any tool: those of an agent that lost its tools are still declared. */
function toolsOf(history: readonly HistoryMessage[], tools: readonly ToolSpec[]): ToolSpec[] {
  if (tools.length > 0) return [];
  const names = new Set(callsOf(history).map((call) => toolUseName(call.function.name)));
  const description = "No longer available: do not call it.";
  return [...names].map((name) => ({ name, description, parameters: { type: "object" } }));
}

function converseTool({ name, description, parameters }: ToolSpec): Tool {
  const { $schema: _draft, ...schema } = parameters;
  const toolSpec = {
    name,
    // An empty one is refused.
    ...(description.trim() === "" ? {} : { description }),
    // A JSON Schema is JSON, which is what the package calls a document.
    inputSchema: { json: schema },
  };
  return { toolSpec } as Tool;
}
