/** An agent that is served: what answers its messages, who uses it, and how it ends. */

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

/** How long what an agent's module has opened stays open: until nothing needs the agent any more. */
export class ModuleLife {
  readonly #close: (() => unknown) | undefined;
  #users = 0;
  #isClosed = false;
  #onUnused: (() => void) | undefined;

  /** `close` is what the module exports under this name. */
  constructor(close: (() => unknown) | undefined) {
    this.#close = close;
  }

  /** Counts a message or a run, until the function is called that this gives. @throws ApiError once all is closed */
  readonly use = (): (() => void) => {
    if (this.#isClosed) throw shuttingDown();
    this.#users += 1;
    return () => {
      this.#users -= 1;
      if (this.#users === 0) this.#onUnused?.();
    };
  };

  /** No new message needs it: closes it after the last run. Rejects if `close` throws, or takes longer than `maxMs`. */
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
   * Goes on with the exchange by one request, and yields what is said: one batch for each packet, and none is empty. Throws an
   * `ApiError` for every failure of the other side, also for an answer that broke off; after an abort it throws anything, or
   * ends quietly. The abort closes the upstream connection, and so does leaving the loop.
   */
  ask(exchange: Exchange, options: AskOptions): AsyncIterable<ModelEvent[]>;
  /** The state that a client goes on from after this end, with at most so many characters of base64 in files. */
  stateOf(exchange: Exchange, end: End, maxFileChars: number): EndState;
  /** What people read of calls that are carried out elsewhere, in one run; absent where none are. */
  toolTexts?(...calling: ConstructorParameters<typeof ToolTexts>): ToolTexts;
}

export interface AskOptions {
  readonly setup: ModelSetup;
  readonly context: RunContext;
  readonly observer?: RequestObserver | undefined;
}

/** Any other provider whose states are of the same kind can go on with the same conversation. */
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
  /** The secrets that sign states which have to be signed, whatever the settings say. */
  stateSecrets(): readonly string[];
  /** Loads what calls the hooks that run after the answer; one for all. */
  hooks(): Promise<HookQueue>;
  /** How long a function of the author may take, but for `execute`. */
  readonly hookMs: number;
  /** A text without the secrets of the environment. */
  strike(text: string): string;
  warn(sentence: string): void;
  /** What was said of tools that were chosen for a message. */
  readonly warned: Set<Notice>;
}

/** What is loaded only where an agent needs it. */
interface OfSomeAgents {
  hooks?: HookQueue | undefined;
  costOf?: CostOf | undefined;
  page?: CheckedPage | undefined;
  /** Where tools come from beside what the agent's author has written. */
  tools?: ToolSource | undefined;
}

interface OfTools {
  readonly tools: ReadonlyMap<string, Tool>;
  readonly instructions: readonly string[];
}

/** Tools that are chosen for each message get a series of metrics each, as long as they are no more than these. */
const MAX_CHOSEN_TOOLS = 100;
/** Sentences of tools that are left out, before one may be said again. */
const MAX_SAID = 1000;

/** An agent that is served. A run takes it once, at its start, and keeps it until its end. */
export class ServedAgent {
  readonly agent: Agent;
  readonly provider: AnswerSource;
  /** Which files a message may have. */
  readonly accepts: readonly FileType[];
  /** Names the sender of a message; absent where the agent does not ask for one. */
  readonly authenticate: Authenticate | undefined;
  readonly life: ModuleLife;
  /** How long a function of the author may take, but for `execute`. */
  readonly hookMs: number;
  /** Absent where the agent has no hook that runs after the answer. */
  readonly hooks: HookQueue | undefined;
  /** Absent where the agent has no prices. */
  readonly costOf: CostOf | undefined;
  /** Absent where the agent's owner says nothing of the chat. */
  readonly page: CheckedPage | undefined;
  /** Gets what is known of its runs, beside the sinks of all runs. */
  readonly sink: RunSink | undefined;
  readonly #module: AgentModule;
  readonly #toolSources: readonly ToolSource[];
  /** Whether all states are signed. */
  readonly #signsAll: boolean;
  readonly #parts: ServingParts;
  /** The tools that the model may call in every run. */
  readonly #fixed: ReadonlyMap<string, Tool>;
  /** What was said of tools that were left out. */
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

  /** @throws ApiError `overloaded` while something is away without which no message can be answered */
  refuseUnready(): void {
    if (this.#toolSources.some((source) => source.isReady?.() === false)) throw unready();
  }

  /** The tools that the model may call in this run, by name, and what they say of themselves. @throws as `ToolSource.toolsFor` does */
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
    // Names of tools that run elsewhere are known when they run.
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

  /** What a user interface needs to know before the first message. The page at `/` has it, too: the same for everybody. */
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

  /** A text without the secrets of the environment. */
  strike(text: string): string {
    return this.#parts.strike(text);
  }

  #sayLeftOut(mistake: string): void {
    if (this.#leftOut.has(mistake)) return;
    // A mistake may name something that is new with each message.
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

/** Closes what gives tools, and what the module has opened. */
function closing(sources: readonly ToolSource[], close: AgentModule["close"]): AgentModule["close"] {
  const closers = sources.flatMap((source) => source.close?.bind(source) ?? []);
  if (closers.length === 0) return close;
  return () => Promise.all([...closers, close].map(async (one) => one?.()));
}

/**
 * The secrets of the setting, else one that all processes share or, without Redis, one of this start. That goes on verifying
 * what it has signed, if a setting comes later.
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

/** What serves the next message: another agent may take its place at any time. */
export class AgentRuntime {
  #current: ServedAgent;
  readonly #maxMs: number;
  readonly #fail: (error: unknown) => void;
  /** The ends of modules whose agents serve nothing new. */
  readonly #ending = new Set<Promise<void>>();

  /** `fail` gets what a module throws when it is closed, and a shutdown waits no longer than `maxMs` for that. */
  constructor(first: ServedAgent, maxMs: number, fail: (error: unknown) => void) {
    this.#current = first;
    this.#maxMs = maxMs;
    this.#fail = fail;
  }

  get current(): ServedAgent {
    return this.#current;
  }

  /** Has the agent do some work, until whose end nothing is closed that its module has opened. @throws ApiError once all is closed */
  async use<Result>(work: (served: ServedAgent) => Promise<Result>): Promise<Result> {
    const served = this.#current;
    const leave = served.life.use();
    return work(served).finally(leave);
  }

  /** What the former agent's module has opened is closed after its last run. */
  replace(next: ServedAgent): { keepsConversations: boolean } {
    const { agent, provider } = this.#current;
    this.#end();
    this.#current = next;
    // What states are bound to.
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

/** Why all states are signed whatever the settings say, in words. */
export function signerOf({ authenticate, agent }: AgentModule): string | undefined {
  if (authenticate !== undefined) return "authenticate says who sends each message";
  if (agent.ownRun !== undefined) return "the agent has run";
  // A message that stands in a made-up history would pass by the first, and an answer by the other.
  const decider = (["onMessage", "onAnswer"] as const).find((name) => agent.hooks[name] !== undefined);
  return decider && `the agent has ${decider}`;
}

/** The same of the states that hold calls which clients may not read. */
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

/** Says what holds with these tools, or with those that are known at the start. */
export type Notice = (module: AgentModule, settings: Settings, tools?: readonly Tool[]) => string | undefined;

const NOTICES: readonly Notice[] = [stateSecretWarning, approvalNotice];

/** Says of chosen tools, once, what the start says of those that are always there. */
function warnOfChosen(tools: readonly Tool[], module: AgentModule, { settings, warn, warned }: ServingParts): void {
  for (const notice of NOTICES) {
    // The start has already said what does not depend on the tools.
    if (warned.has(notice) || notice(module, settings) !== undefined) continue;
    const sentence = notice(module, settings, tools);
    if (sentence === undefined) continue;
    warned.add(notice);
    warn(sentence);
  }
}
