/** An agent that is served: what answers its messages, the runs that use it, and how it is closed. */

import { randomBytes } from "node:crypto";
import type { Caller } from "../auth/access.ts";
import type { Authenticate } from "../auth/authenticate.ts";
import type { Settings } from "../config/settings.ts";
import { within } from "../config/within.ts";
import type { CostOf, RunEntry, RunSink } from "../observe/run-observer.ts";
import { type FileType, MAX_ATTACHMENT_BYTES, MAX_TEXT_BYTES } from "../protocol/attachments.ts";
import type { AgentInfo } from "../protocol/chat.ts";
import { shuttingDown } from "../protocol/errors.ts";
import type { ModelEvent, ModelSetup, Provider, RequestObserver, ServedFacts } from "../providers/provider.ts";
import type { Agent, AgentModule } from "./define.ts";
import type { Exchange } from "./exchange.ts";
import type { HookQueue } from "./hook-queue.ts";
import { HOOK_MS, hookFailure } from "./hooks.ts";
import type { CheckedPage } from "./owners-page.ts";
import type { RunContext } from "./run-context.ts";
import type { StateBinding } from "./state.ts";
import { type End, type EndState, KINDS } from "./states.ts";
import type { Tool } from "./tool-definition.ts";
import { askSources, type ToolSource, unready } from "./tool-sources.ts";
import type { ToolTexts } from "./tool-texts.ts";

/** Keeps open what an agent's module has opened, until nothing uses the agent any more. */
export class ModuleLife {
  readonly #close: (() => unknown) | undefined;
  #users = 0;
  #isClosed = false;
  #onUnused: (() => void) | undefined;

  /** `close` closes the tool sources and calls the module's own `close`. */
  constructor(close: (() => unknown) | undefined) {
    this.#close = close;
  }

  /** Counts a message or a run, until the returned function is called. @throws ApiError once the module is closed */
  readonly use = (): (() => void) => {
    if (this.#isClosed) throw shuttingDown();
    this.#users += 1;
    return () => {
      this.#users -= 1;
      if (this.#users === 0) this.#onUnused?.();
    };
  };

  /** Closes the module after the last message or run. Rejects if `close` throws, or takes longer than `maxMs`. */
  async end(maxMs = HOOK_MS): Promise<void> {
    if (this.#users > 0) {
      await new Promise<void>((resolve) => {
        this.#onUnused = resolve;
      });
    }
    this.#isClosed = true;
    const close = this.#close;
    if (close === undefined) return;
    await within(close, maxMs).catch((thrown: unknown) => {
      throw hookFailure("close", thrown);
    });
  }
}

/** What answers an agent's messages: a model of a provider, or code of the agent's author. */
export interface AnswerSource extends ServedFacts {
  /**
   * Continues the exchange by one request, and yields what is said: one batch for each packet, and none is empty.
   * Throws an `ApiError` for every failure of the other side, also for an answer that broke off. After an abort it may
   * throw anything, or just end. An abort closes the upstream connection, and so does leaving the loop.
   */
  ask(exchange: Exchange, options: AskOptions): AsyncIterable<ModelEvent[]>;
  /** The state from which a client continues after `end`, with at most `maxFileChars` characters of base64 in files. */
  stateOf(exchange: Exchange, end: End, maxFileChars: number): EndState;
  /** Texts for people about one run's calls that run elsewhere; absent if no calls run elsewhere. */
  toolTexts?(...calling: ConstructorParameters<typeof ToolTexts>): ToolTexts;
}

export interface AskOptions {
  readonly setup: ModelSetup;
  readonly context: RunContext;
  readonly observer?: RequestObserver | undefined;
}

/** Any other provider with the same state kind can continue the same conversation. */
export function modelSource({ model, ...facts }: Provider): AnswerSource {
  const { request, stateOf } = KINDS[facts.stateKind];
  return {
    ...facts,
    ask(exchange, { setup, context, observer }) {
      const keep = exchange.keep.bind(exchange);
      return model({ setup, ...request(exchange), keep, observer }, context.signal);
    },
    stateOf,
  };
}

/** What all agents of a server share. */
export interface ServingParts {
  readonly settings: Settings;
  /** The secrets for states that have to be signed even if the settings have no secret. */
  stateSecrets(): readonly string[];
  /** Loads the queue for hooks that run after the answer; one for all agents. */
  hooks(): Promise<HookQueue>;
  /** Time limit of the author's functions except `execute`, in milliseconds. */
  readonly hookMs: number;
  /** Removes the secrets of the environment from a text. */
  strike(text: string): string;
  warn(sentence: string): void;
  /** The notices about tools chosen for a message that were given already. */
  readonly warned: Set<Notice>;
}

/** What is loaded only where an agent needs it. */
interface OfSomeAgents {
  hooks?: HookQueue | undefined;
  costOf?: CostOf | undefined;
  page?: CheckedPage | undefined;
  /** The source of tools that the agent's author has not written: MCP servers. */
  tools?: ToolSource | undefined;
}

interface OfTools {
  readonly tools: ReadonlyMap<string, Tool>;
  readonly instructions: readonly string[];
}

/** Maximum number of tools chosen for messages that get a metrics series of their own. */
const MAX_CHOSEN_TOOLS = 100;
/** Number of warnings about left-out tools that are remembered: more may repeat one. */
const MAX_SAID = 1000;

/** An agent that is served. A run looks it up once, at its start, and keeps it until its end. */
export class ServedAgent {
  readonly agent: Agent;
  readonly provider: AnswerSource;
  /** Which files a message may have. */
  readonly accepts: readonly FileType[];
  /** Identifies the sender of a message; absent if the agent does not ask for one. */
  readonly authenticate: Authenticate | undefined;
  readonly life: ModuleLife;
  /** Time limit of the author's functions except `execute`, in milliseconds. */
  readonly hookMs: number;
  /** Absent where the agent has no hook that runs after the answer. */
  readonly hooks: HookQueue | undefined;
  /** Absent where the agent has no prices. */
  readonly costOf: CostOf | undefined;
  /** Absent if the agent has no `chat` field. */
  readonly page: CheckedPage | undefined;
  /** Gets the records of this agent's runs, in addition to the sinks for all runs. */
  readonly sink: RunSink | undefined;
  readonly #module: AgentModule;
  readonly #toolSources: readonly ToolSource[];
  /** Whether all states are signed. */
  readonly #signsAll: boolean;
  readonly #parts: ServingParts;
  /** The tools that the model may call in every run. */
  readonly #fixed: ReadonlyMap<string, Tool>;
  /** The warnings about left-out tools that were given already. */
  readonly #leftOut = new Set<string>();
  /** The names of tools that metrics have a series for. */
  readonly #toolNames: Set<string>;
  readonly #maxToolNames: number;

  constructor(module: AgentModule, provider: AnswerSource, parts: ServingParts, more: OfSomeAgents = {}) {
    const { agent, authenticate, close } = module;
    this.agent = agent;
    this.provider = provider;
    this.accepts = agent.accepts ?? provider.mediaTypes;
    this.authenticate = authenticate;
    this.#toolSources = more.tools === undefined ? agent.toolSources : [...agent.toolSources, more.tools];
    this.life = new ModuleLife(closing(this.#toolSources, close));
    this.hookMs = parts.hookMs;
    this.hooks = more.hooks;
    this.costOf = more.costOf;
    this.page = more.page;
    this.sink = this.#sinkOf(agent.hooks);
    this.#module = module;
    this.#signsAll = signerOf(module) !== undefined;
    this.#parts = parts;
    const hosted = (agent.settings.hostedTools ?? []).map(({ type }) => type);
    this.#fixed = new Map(fixedTools(agent).map((tool) => [tool.name, tool]));
    this.#toolNames = new Set([...this.#fixed.keys(), ...hosted]);
    this.#maxToolNames = this.#toolNames.size + MAX_CHOSEN_TOOLS;
  }

  /** @throws ApiError `overloaded` while a tool source that every message needs is unreachable */
  refuseUnready(): void {
    if (this.#toolSources.some((source) => source.isReady?.() === false)) throw unready();
  }

  /** The tools that the model may call in this run, and their instructions. @throws as `ToolSource.toolsFor` does */
  async toolsFor(context: RunContext): Promise<OfTools> {
    const sources = this.#toolSources;
    if (sources.every(({ toolsFor }) => toolsFor === undefined)) return { tools: this.#fixed, instructions: [] };
    const { tools, leftOut, instructions } = await askSources(sources, context, this.hookMs);
    for (const name of tools.keys()) this.#addToolName(name);
    warnOfChosen([...tools.values()], this.#module, this.#parts);
    for (const mistake of leftOut) this.#sayLeftOut(mistake);
    return { tools, instructions };
  }

  /** Whether metrics have a series for a tool of this name. A model can make up any name. */
  isTool(name: string): boolean {
    // Names of tools that run elsewhere are known only when they run.
    if (this.agent.ownRun !== undefined) this.#addToolName(name);
    return this.#toolNames.has(name);
  }

  /** What the states of this user are bound to now. */
  stateBindingOf({ user }: Pick<Caller, "user">): StateBinding {
    const { settings, stateSecrets } = this.#parts;
    const { maxHistoryItems, maxHistoryBytes } = settings;
    return {
      kind: this.provider.stateKind,
      agent: this.agent.id,
      provider: this.provider.id,
      user: user?.id,
      secrets: this.#signsAll ? stateSecrets() : settings.stateSecrets,
      ownSecrets: stateSecrets(),
      limits: { maxHistoryItems, maxHistoryBytes },
    };
  }

  /** What a user interface needs before the first message. Part of the page at `/`, so it is the same for everybody. */
  get info(): AgentInfo {
    const { name, agent, hooks, ownRun } = this.agent;
    const { models } = this.provider;
    const { settings } = this.#parts;
    return {
      name,
      agent,
      auth_required: settings.requiresKey,
      suggestions: [],
      ...this.page?.plain,
      ...(this.page === undefined ? {} : { chat: this.page.page }),
      ...(models === undefined ? {} : { models: [...models] }),
      ...(hooks.onFeedback === undefined ? {} : { feedback: true }),
      ...(ownRun === undefined ? { continue: true } : {}),
      attachments: {
        media_types: [...this.accepts],
        max_bytes: MAX_ATTACHMENT_BYTES,
        max_text_bytes: MAX_TEXT_BYTES,
        max_count: settings.maxAttachments,
      },
      max_body_bytes: settings.maxBodyBytes,
    };
  }

  /** Removes the secrets of the environment from a text. */
  strike(text: string): string {
    return this.#parts.strike(text);
  }

  #sayLeftOut(mistake: string): void {
    if (this.#leftOut.has(mistake)) return;
    // A mistake may contain something that is new with each message, so the set has to be limited.
    if (this.#leftOut.size >= MAX_SAID) this.#leftOut.clear();
    this.#leftOut.add(mistake);
    this.#parts.warn(`One of the agent's tools is left out. ${mistake}`);
  }

  #addToolName(name: string): void {
    if (this.#toolNames.size < this.#maxToolNames) this.#toolNames.add(name);
  }

  #sinkOf({ onRunEnd }: Agent["hooks"]): RunSink | undefined {
    if (onRunEnd === undefined) return undefined;
    return { run: (entry: RunEntry) => void this.hooks?.addRun(onRunEnd, entry, this.life) };
  }
}

/** Closes the tool sources, and what the module has opened. */
function closing(sources: readonly ToolSource[], close: AgentModule["close"]): AgentModule["close"] {
  const closers = sources.flatMap((source) => source.close?.bind(source) ?? []);
  if (closers.length === 0) return close;
  return () => Promise.all([...closers, close].map(async (one) => one?.()));
}

/**
 * The secrets of the settings; if there are none, those that all processes share or, without Redis, a random one of
 * this process. If the settings get secrets later, the former ones still verify what they have signed.
 */
export function stateSecretsOf(
  settings: Settings,
  shared: { readonly stateSecrets: readonly string[] } | undefined,
): () => readonly string[] {
  const own = [randomBytes(32).toString("base64url")];
  let hasSigned = settings.stateSecrets.length === 0;
  return () => {
    const { stateSecrets } = settings;
    hasSigned ||= stateSecrets.length === 0;
    return hasSigned ? [...stateSecrets, ...(shared?.stateSecrets ?? own)] : stateSecrets;
  };
}

/** The agent that serves the next message; it may be replaced at any time. */
export class AgentRuntime {
  #current: ServedAgent;
  readonly #maxMs: number;
  readonly #fail: (error: unknown) => void;
  /** Modules that are being closed: their agents get no new message. */
  readonly #ending = new Set<Promise<void>>();

  /** `fail` gets what a module throws when it is closed. `maxMs` limits that, and how long a shutdown waits for it. */
  constructor(first: ServedAgent, maxMs: number, fail: (error: unknown) => void) {
    this.#current = first;
    this.#maxMs = maxMs;
    this.#fail = fail;
  }

  get current(): ServedAgent {
    return this.#current;
  }

  /** Has the agent do some work; its module stays open until that ends. @throws ApiError once all is closed */
  async use<Result>(work: (served: ServedAgent) => Promise<Result>): Promise<Result> {
    const served = this.#current;
    const leave = served.life.use();
    return work(served).finally(leave);
  }

  /** Replaces the agent. The former one's module is closed after its last run. */
  replace(next: ServedAgent): { keepsConversations: boolean } {
    const { agent, provider } = this.#current;
    this.#end();
    this.#current = next;
    // States are bound to both ids.
    return { keepsConversations: agent.id === next.agent.id && provider.id === next.provider.id };
  }

  /** Closes what all modules have opened. */
  async close(): Promise<void> {
    this.#end();
    await within(() => Promise.all(this.#ending), this.#maxMs).catch(() => {});
  }

  #end(): void {
    const ending: Promise<void> = this.#current.life
      .end(this.#maxMs)
      .catch(this.#fail)
      .finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }
}

/** Why all states have to be signed even if the settings have no secret, in words; `undefined` if they have not. */
export function signerOf({ authenticate, agent }: AgentModule): string | undefined {
  if (authenticate !== undefined) return "authenticate says who sends each message";
  if (agent.ownRun !== undefined) return "the agent has run";
  // A made-up history could contain messages that `onMessage`, or answers that `onAnswer`, has never seen.
  const decider = (["onMessage", "onAnswer"] as const).find((name) => agent.hooks[name] !== undefined);
  return decider && `the agent has ${decider}`;
}

/** Why states with hidden calls have to be signed, in words; `undefined` if no tool hides its calls. */
function hiderIn(tools: readonly Tool[]): string | undefined {
  const hider = tools.find(({ expose }) => expose !== "all");
  return hider && `the tool "${hider.name}" hides its calls in them`;
}

/** The warning about states that are signed without a `PARLEY_STATE_SECRET`: they do not survive a restart. */
export function stateSecretWarning(
  module: AgentModule,
  { stateSecrets, redisUrl }: Settings,
  tools = fixedTools(module.agent),
): string | undefined {
  const signer = signerOf(module) ?? hiderIn(tools);
  if (stateSecrets.length > 0 || signer === undefined) return undefined;
  const lost =
    redisUrl === ""
      ? "Conversations end with this process, and no other can continue them"
      : "Conversations end when Redis loses its data";
  return `${lost}, because ${signer} and no secret is set to sign them. Set PARLEY_STATE_SECRET; make one with: openssl rand -hex 32`;
}

/** The notice about calls that wait for approval without Redis: they expire with the process. */
export function approvalNotice(
  { agent }: AgentModule,
  { redisUrl }: Settings,
  tools = fixedTools(agent),
): string | undefined {
  const asks = tools.some(({ approval }) => approval !== undefined);
  if (!asks || redisUrl !== "") return undefined;
  return "Tool calls that wait for approval expire when this process ends. Set PARLEY_REDIS_URL to keep them.";
}

function fixedTools({ toolSources }: Agent): readonly Tool[] {
  return toolSources.flatMap(({ fixed }) => fixed);
}

/** A sentence about these tools, by default those that are known at the start; `undefined` if none is needed. */
export type Notice = (module: AgentModule, settings: Settings, tools?: readonly Tool[]) => string | undefined;

const NOTICES: readonly Notice[] = [stateSecretWarning, approvalNotice];

/** Gives the notices about tools chosen for a message, each once, that the start gives about fixed tools. */
function warnOfChosen(tools: readonly Tool[], module: AgentModule, { settings, warn, warned }: ServingParts): void {
  for (const notice of NOTICES) {
    // The start has already given the notices that do not depend on the chosen tools.
    if (warned.has(notice) || notice(module, settings) !== undefined) continue;
    const sentence = notice(module, settings, tools);
    if (sentence === undefined) continue;
    warned.add(notice);
    warn(sentence);
  }
}
