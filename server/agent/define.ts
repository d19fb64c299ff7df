/** What a project's author writes: an agent, and the other exports of its module. */

import type { Authenticate } from "../auth/authenticate.ts";
import { nearestName } from "../config/nearest-name.ts";
import { ConfigError } from "../errors.ts";
import type { FileType } from "../protocol/attachments.ts";
import { isRecord } from "../protocol/json.ts";
import { type AiSdkLanguageModel, checkLanguageModel, modelName } from "../providers/ai-sdk/language-model.ts";
import type { HostedTool, ModelSettings, ReasoningEffort } from "../providers/provider.ts";
import type { ChatDefinition } from "./chat-definition.ts";
import { fieldNames, isFunction, meantField, optionalText, requiredText } from "./fields.ts";
import type { Hooks } from "./hooks.ts";
import type { McpOfAgent, McpServerDefinition } from "./mcp-definition.ts";
import { checkModelSettings } from "./model-settings.ts";
import type { Price } from "./prices.ts";
import type { RunContext } from "./run-context.ts";
import {
  type AgentObject,
  checkAccepts,
  checkRun,
  howToRun,
  OF_MODELS,
  type OwnRun,
  type RunFunction,
} from "./run-function.ts";
import type { AnyToolDefinition, ToolTextsDefinition } from "./tool-definition.ts";
import { checkTools, type ToolSource } from "./tool-sources.ts";

/**
 * A model, as `provider/name`. Editors suggest the names listed here. They are only examples: any other model name that
 * a provider knows works as well.
 */
export type ModelName =
  | "demo"
  | "openai/gpt-5.2"
  | "anthropic/claude-sonnet-5"
  | "gemini/gemini-3-flash-preview"
  | "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0"
  | "vertex/gemini-2.5-flash"
  | "ollama/qwen3:8b"
  | "litellm/anthropic/claude-sonnet-4-5"
  | "compatible/qwen3-8b"
  | (string & Record<never, never>);

/** An agent as an author defines it. */
export interface AgentDefinition extends Hooks {
  /** Name of the application: `name` of `/api/info`. */
  name: string;
  /** Name of the agent. Default: the application's name. */
  agent?: string;
  /**
   * Identifies the agent in stored conversations and in Redis, 1 to 200 characters. Default: `name`. Set it to the old
   * name when you rename the agent.
   */
  id?: string;
  /**
   * `provider/model`, such as `openai/gpt-5.2`; `demo` needs no key and no network. Or a language model of the AI SDK
   * 5, 6 or 7, such as `anthropic("claude-sonnet-5")` of `@ai-sdk/anthropic`. Every agent has `model` or `run`.
   */
  model?: ModelName | AiSdkLanguageModel;
  /** Answers messages in place of `model` and its settings: your own code, or an agent of another framework. */
  run?: RunFunction | AgentObject;
  /** Texts for people about the tools that run in `run` or come from MCP servers, by tool name. */
  toolTexts?: Record<string, ToolTextsDefinition>;
  /**
   * Media types of the files that a message may have; `[]` allows none. Default: the images and PDF files that the
   * model's provider accepts, and none for `run`. Text files are accepted only if their types are listed.
   */
  accepts?: FileType[];
  /**
   * Models to try, in this order, when the previous one fails before it says anything. All of them must keep
   * conversations in the same way, and all get the same settings.
   */
  fallbacks?: (ModelName | AiSdkLanguageModel)[];
  /** The system prompt, or a function that makes it for each message. Only the model's provider gets it. */
  instructions?: string | ((ctx: RunContext) => string | Promise<string>);
  /** The tools, or a function that chooses them for each message. */
  tools?: AnyToolDefinition[] | ((ctx: RunContext) => AnyToolDefinition[] | Promise<AnyToolDefinition[]>);
  /** MCP servers by name. The agent has their tools in addition to its own; such a tool is called `name__tool`. */
  mcp?: Record<string, McpServerDefinition>;
  /** Maximum number of model requests in one run, 1 to 1,000. Default 10. */
  maxTurns?: number;
  /** How much a reasoning model may think. Default: the provider's. */
  reasoningEffort?: ReasoningEffort;
  /** Randomness of the answer, 0 to 2. Default: the provider's; most reasoning models do not accept it. */
  temperature?: number;
  /** Maximum number of tokens of one model turn. Default: the provider's. */
  maxOutputTokens?: number;
  /** Fields that are merged last into each model request, for options that Parley does not know. */
  extraBody?: Record<string, unknown>;
  /** Options for a model of the AI SDK, by provider, as its package documents them. */
  providerOptions?: Record<string, Record<string, unknown>>;
  /** OpenAI: with `false`, OpenAI stores nothing and the client keeps the whole conversation. Default true. */
  store?: boolean;
  /** OpenAI: tools that OpenAI runs. Further fields of an object are sent along, such as `vector_store_ids`. */
  hostedTools?: ("web_search" | "code_interpreter" | HostedTool)[];
  /**
   * Prices by the names that models have in the log: `openai/gpt-5.2`, `run`. `onRunEnd`, the log, the metrics and
   * `parley dev` then report what an answer cost. Clients do not get it.
   */
  prices?: Record<string, Price>;
  /** Texts, looks and behaviour of the chat: on the page at `/`, and wherever a site shows the agent. */
  chat?: ChatDefinition;
}

/** A checked agent, ready to be served. */
export interface Agent {
  readonly id: string;
  readonly name: string;
  readonly agent: string;
  /** The name of the first model; `run` where the author's own code answers. */
  readonly model: string;
  /** In the order in which they are asked; empty where the author's own code answers. */
  readonly models: readonly (string | AiSdkLanguageModel)[];
  /** Which files a message may have; `undefined`: those that the models accept. */
  readonly accepts: readonly FileType[] | undefined;
  readonly ownRun: OwnRun | undefined;
  readonly instructions: string | ((ctx: RunContext) => unknown);
  /** Asked for tools at each message. */
  readonly toolSources: readonly ToolSource[];
  /** Unchecked: `server/mcp/` checks them. */
  readonly mcp: McpOfAgent | undefined;
  readonly maxTurns: number;
  readonly settings: ModelSettings;
  readonly hooks: Hooks;
  /** Unchecked: `prices.ts` checks them. */
  readonly prices: unknown;
  /** Unchecked: `owners-page.ts` checks it. */
  readonly chat: unknown;
}

/** What a project's module exports, checked. */
export interface AgentModule {
  readonly agent: Agent;
  /** Closes what the module has opened; called after the agent's last run. */
  readonly close?: (() => unknown) | undefined;
  /** Identifies the sender of each message. */
  readonly authenticate?: Authenticate | undefined;
  /** Users to try the agent as in `parley dev`, which alone reads and checks them. */
  readonly devUsers?: unknown;
}

/** Gives an agent its type; `export default` it from `agent.ts`. */
export function defineAgent(
  agent: AgentDefinition & ({ model: ModelName | AiSdkLanguageModel } | { run: RunFunction | AgentObject }),
): AgentDefinition {
  return agent;
}

const DEFAULT_MAX_TURNS = 10;

/** Checks what a project exports. @throws ConfigError that names the field and says what is right */
export function checkAgent(exported: unknown): Agent {
  if (!isRecord(exported)) throw new ConfigError(noAgent(exported));
  refuseOtherThings(exported);
  refuseUnknownFields(exported, Object.keys(AGENT_FIELDS));
  const ownRun = checkRun(exported);
  const models = ownRun === undefined ? checkModels(exported) : [];
  if (ownRun === undefined && exported.mcp === undefined && exported.toolTexts !== undefined) {
    throw new ConfigError(
      "toolTexts is for tools that run elsewhere, but there is neither run nor mcp. Write its fields into tool({ … }).",
    );
  }
  const { maxTurns = DEFAULT_MAX_TURNS } = exported;
  const name = requiredText(exported, "name");
  if (typeof maxTurns !== "number" || !Number.isInteger(maxTurns) || maxTurns < 1 || maxTurns > 1000) {
    throw new ConfigError("maxTurns must be a whole number from 1 to 1000.");
  }
  return Object.freeze({
    id: checkId(exported, name),
    name,
    agent: optionalText(exported, "agent") ?? name,
    model: models[0] === undefined ? "run" : modelName(models[0]),
    models,
    accepts: checkAccepts(exported),
    ownRun,
    instructions: checkInstructions(exported),
    toolSources: checkTools(exported),
    mcp: exported.mcp === undefined ? undefined : { servers: exported.mcp, toolTexts: exported.toolTexts },
    maxTurns,
    settings: checkModelSettings(exported),
    hooks: checkHooks(exported),
    prices: exported.prices,
    chat: exported.chat,
  });
}

/** The fields of an agent, and the `typeof` that their values may have. */
export const AGENT_FIELDS: Readonly<Record<keyof AgentDefinition, string>> = {
  name: "string",
  agent: "string",
  model: "string object",
  run: "function object",
  toolTexts: "object",
  accepts: "object",
  id: "string",
  fallbacks: "object",
  instructions: "string function",
  tools: "object function",
  mcp: "object",
  maxTurns: "number",
  reasoningEffort: "string",
  temperature: "number",
  maxOutputTokens: "number",
  extraBody: "object",
  providerOptions: "object",
  store: "boolean",
  hostedTools: "object",
  prices: "object",
  chat: "object",
  onRunEnd: "function",
  onFeedback: "function",
  onMessage: "function",
  onAnswer: "function",
};

const HOOKS = ["onRunEnd", "onFeedback", "onMessage", "onAnswer"] as const;

/** The fields of `chat`. */
const CHAT_FIELDS = fieldNames<ChatDefinition>({
  ...{ title: true, welcome: true, placeholder: true, disclaimer: true, suggestions: true, links: true },
  ...{ signIn: true, signOut: true },
  ...{ accent: true, logo: true, favicon: true, font: true, corners: true, theme: true, density: true },
  ...{ conversations: true, feedback: true, tools: true, thinking: true, button: true },
});

/** Fields that agents of other packages have, and where they belong here. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  authenticate: "Export it beside the agent, or give it to createParley: export function authenticate() { … }",
  close: "Export it beside the agent: export function close() { … }",
  devUsers: "Export them beside the agent: export const devUsers = [ … ];",
  apiKey: "Keys are settings: set OPENAI_API_KEY, or that of your provider, in the environment or in .env.",
  baseURL: "Addresses are settings: set OPENAI_BASE_URL, or that of your provider, in the environment or in .env.",
};

/** Says what was given instead of an agent, and what to write. */
function noAgent(given: unknown): string {
  if (given instanceof Promise) return "The agent is a promise. Write await before it.";
  if (typeof given === "function" && /^class\b/.test(String(given))) {
    return "The agent is a class. Export an object of it: export default new …().";
  }
  if (typeof given === "function") return "The agent is a function. Call it, with await if it is async.";
  if (typeof given === "string")
    return "The agent is a string. Give what defineAgent returns, or the module that exports it.";
  return "The agent must be an object: export default defineAgent({ … }).";
}

/** Refuses objects for which a list of fields would not help, such as a framework's agent. @throws ConfigError */
function refuseOtherThings(given: Record<string, unknown>): void {
  if (given instanceof Promise) throw new ConfigError(noAgent(given));
  if ("default" in given) {
    throw new ConfigError('The agent is a module. Use what it exports as default: export { default } from "…".');
  }
  if (given[Symbol.toStringTag as never] === "Module") {
    throw new ConfigError("The module exports no agent. Write there: export default defineAgent({ … }).");
  }
  const advice = given.model === undefined && given.run === undefined ? howToRun(given) : undefined;
  if (advice !== undefined) throw new ConfigError(`The agent is one of a framework. ${advice}`);
}

/** Refuses unknown fields: a misspelt one would silently do nothing. @throws ConfigError */
function refuseUnknownFields(from: Record<string, unknown>, known: readonly string[], at = ""): void {
  for (const field of known) {
    if (from[field] instanceof Promise) throw new ConfigError(`${at}${field} is a promise. Write await before it.`);
  }
  const field = Object.keys(from).find((name) => !known.includes(name)) ?? misspeltMethod(from, known);
  if (field === undefined) return;
  const meant = meantField(field, known);
  const inChat = at === "" && CHAT_FIELDS.includes(field);
  const elsewhere = inChat ? `Write chat: { ${field}: … }.` : at === "" ? ELSEWHERE[field] : undefined;
  const advice = meant === undefined ? `The fields are ${known.join(", ")}.` : `Did you mean ${at}${meant}?`;
  throw new ConfigError(`${at}${field} is not a field of an agent. ${elsewhere ?? advice}`);
}

/** An object of a class may have other methods: only one whose name is a typo of a missing field counts as wrong. */
function misspeltMethod(from: Record<string, unknown>, known: readonly string[]): string | undefined {
  const prototype = Object.getPrototypeOf(from);
  if (prototype === null || prototype === Object.prototype) return undefined;
  return Object.getOwnPropertyNames(prototype).find((name) => {
    const meant = known.includes(name) ? undefined : nearestName(name, known, 1);
    return meant !== undefined && from[meant] === undefined;
  });
}

function checkInstructions(from: Record<string, unknown>): Agent["instructions"] {
  const { instructions = "" } = from;
  if (typeof instructions === "string") return instructions;
  if (isFunction(instructions)) return instructions.bind(from);
  throw new ConfigError("instructions must be a string, or a function that returns one.");
}

const MAX_ID_CHARS = 200;

function checkId(from: Record<string, unknown>, name: string): string {
  const id = from.id === undefined ? name : requiredText(from, "id");
  if (id.length <= MAX_ID_CHARS) return id;
  throw new ConfigError(`${from.id === undefined ? "name" : "id"} must be at most ${MAX_ID_CHARS} characters.`);
}

function checkHooks(from: Record<string, unknown>): Hooks {
  for (const name of HOOKS) {
    if (from[name] === undefined || typeof from[name] === "function") continue;
    throw new ConfigError(`${name} must be a function.`);
  }
  const hooks = HOOKS.flatMap((name) => (isFunction(from[name]) ? [[name, from[name].bind(from)]] : []));
  return Object.fromEntries(hooks) as Hooks;
}

function checkModels(from: Record<string, unknown>): (string | AiSdkLanguageModel)[] {
  const { model, fallbacks = [] } = from;
  if (!Array.isArray(fallbacks)) throw new ConfigError("fallbacks must be an array of models.");
  const others = fallbacks.map((other: unknown, index) => {
    if (typeof other === "string" && other.trim() === "") {
      throw new ConfigError(`fallbacks[${index}] must be a model, such as "anthropic/claude-sonnet-5".`);
    }
    const checked = typeof other === "string" ? other : checkLanguageModel(other, `fallbacks[${index}]`);
    if (other === model || fallbacks.indexOf(other) !== index) {
      throw new ConfigError(`fallbacks[${index}] repeats "${modelName(checked)}". Remove it.`);
    }
    return checked;
  });
  if (model === undefined || (typeof model === "string" && model.trim() === "")) {
    throw new ConfigError(
      'model is missing. Set it to a name such as "demo" or "openai/gpt-5.2", or write run in its place.',
    );
  }
  const advice = howToRun(model);
  if (advice !== undefined) throw new ConfigError(`model is an agent, not a model. ${advice}`);
  return [typeof model === "string" ? model : checkLanguageModel(model, "model"), ...others];
}

/** Functions that a module may export beside its agent, and what they do. */
const FUNCTIONS = {
  close: "closes what the module has opened",
  authenticate: "says who sends a message",
};

/** Maximum edit distance of an export that counts as misspelt. `answer` and `clone` are names in their own right. */
const SLIPS = { devUsers: 2, authenticate: 3, close: 0, onMessage: 1, onAnswer: 1, onRunEnd: 1, onFeedback: 1 };

/** @throws ConfigError that names the export and says where it belongs */
export function checkModule(exports: Readonly<Record<string, unknown>>): AgentModule {
  const agent = checkAgent(exports.default);
  for (const [name, does] of Object.entries(FUNCTIONS)) {
    const value = exports[name];
    if (value === undefined || typeof value === "function") continue;
    throw new ConfigError(`${name} must be a function that ${does}.`);
  }
  const definition = exports.default as Record<string, unknown>;
  refuseFieldsBeside(definition, exports);
  refuseMisspelt(definition, exports);
  const { close, authenticate, devUsers } = exports as Pick<AgentModule, "close" | "authenticate" | "devUsers">;
  return { agent, close, authenticate, devUsers };
}

/** A field that the agent has may also be exported, such as its tools for a test; a hook must be the same function. */
function refuseFieldsBeside(agent: Record<string, unknown>, exports: Readonly<Record<string, unknown>>): void {
  for (const [name, kinds] of Object.entries(AGENT_FIELDS)) {
    const value = exports[name];
    if (!kinds.includes(typeof value) || value === agent[name]) continue;
    const isHook = HOOKS.some((hook) => hook === name);
    // Beside `run`, exports with names such as `model` or `tools` belong to the framework's agent.
    if (!isHook && (agent[name] !== undefined || (agent.run !== undefined && OF_MODELS.includes(name)))) continue;
    throw new ConfigError(
      `${name} is exported beside the agent, where it does nothing. Make it a field: defineAgent({ ${name}, … }). If it is something else, give it another name.`,
    );
  }
}

function refuseMisspelt(agent: Record<string, unknown>, exports: Readonly<Record<string, unknown>>): void {
  for (const [name, most] of Object.entries(SLIPS)) {
    if (exports[name] !== undefined || agent[name] !== undefined) continue;
    const isOne = name === "devUsers" ? Array.isArray : isFunction;
    const alike = Object.keys(exports).filter((one) => isOne(exports[one]));
    const misspelt = nearestName(name, alike, most);
    if (misspelt === undefined) continue;
    const meant = HOOKS.some((hook) => hook === name) ? `${name}, a field of the agent` : name;
    throw new ConfigError(`${misspelt} is exported, which does nothing. Did you mean ${meant}?`);
  }
}
