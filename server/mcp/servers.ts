/** The connections to MCP servers, which stay open over reloads, and the tools that each run gets from them. */

import { createHash } from "node:crypto";
import type { CallToolResult, Progress } from "@modelcontextprotocol/client";
import { askAuthor, hookFailure } from "../agent/hooks.ts";
import { checkMcp, isReadable, isTexts, type McpOfAgent, type McpServer } from "../agent/mcp-definition.ts";
import { plainText } from "../agent/plain-text.ts";
import type { RunContext } from "../agent/run-context.ts";
import { checkToolTexts, type ToolContext } from "../agent/tool-definition.ts";
import { type Given, type ToolSource, unready } from "../agent/tool-sources.ts";
import type { LoadPackage } from "../config/optional-package.ts";
import { within } from "../config/within.ts";
import { ApiError } from "../protocol/errors.ts";
import { type CallOptions, Connection, Health } from "./connection.ts";
import { isRefusedUser, reasonOf } from "./failures.ts";
import { readCallResult } from "./result.ts";
import { type Texts, toolsOf } from "./tools.ts";
import type { GiveHeaders, Sdk } from "./transport.ts";

/** Users' connections to one server, beyond which unused ones are closed. */
const MAX_USERS = 100;
const IDLE_MS = 15 * 60_000;
/** How long a run waits for a list: longer than a connection needs to be opened, or to fail. */
const OFFER_MS = 15_000;

export interface ServersParts {
  readonly load: LoadPackage;
  /** How long a function of the author may take. */
  readonly hookMs: number;
  notice(sentence: string): void;
  warn(sentence: string): void;
  /** Called when a call has ended. */
  observe(server: string, outcome: Outcome, ms: number): void;
}

type Outcome = "ok" | "error";

type Args = Record<string, unknown>;

/** How many tools are reported to be described differently than before. */
const MAX_SAID = 100;

/** The owner of the connection to a server without headers of users. */
const EVERYBODY = "";

/** The connections to one server, kept as long as an agent names it with the same place. */
interface Slot {
  readonly server: McpServer;
  readonly health: Health;
  /** By their owner, the last used one at the end; "" is everybody. */
  readonly connections: Map<string, Entry>;
  /** Tools that were reported to be described differently than before. */
  readonly rewritten: Set<string>;
  readonly sweeping: NodeJS.Timeout;
  agents: number;
}

interface Entry {
  readonly connection: Connection;
  /** How many calls and requests are using it. */
  uses: number;
  usedAt: number;
}

/** A server as one agent names it. */
interface Named {
  readonly server: McpServer;
  readonly slot: Slot;
}

export class McpServers {
  readonly #parts: ServersParts;
  readonly #slots = new Map<string, Slot>();
  #sdk: Promise<Sdk> | undefined;
  #isOpen = false;

  constructor(parts: ServersParts) {
    this.#parts = parts;
  }

  /** Called once clients can connect: loads the package, and connects to the servers that all users share. */
  open(): void {
    this.#isOpen = true;
    for (const slot of this.#slots.values()) this.#begin(slot);
  }

  /** Which of the servers that all users share are available. */
  get states(): { server: string; isUp: boolean }[] {
    const shared = [...this.#slots.values()].filter(({ server }) => server.headersOf === undefined);
    // A run of a replaced agent may still use a server of the same name.
    const byName = new Map(shared.map((slot) => [slot.server.name, isUp(slot)]));
    return [...byName].map(([server, isUp]) => ({ server, isUp }));
  }

  /** The tools of the servers that an agent names. Their connections are open until `close`. @throws ConfigError */
  async sourceOf({ servers: given, toolTexts }: McpOfAgent): Promise<ToolSource> {
    const servers = checkMcp(given);
    const texts = new Map(checkToolTexts({ toolTexts }).map((tool) => [tool.name, tool]));
    await this.#parts.load("@modelcontextprotocol/client", "find");
    const named = servers.map((server) => this.#enter(server));
    return {
      fixed: [],
      toolsFor: async (context) => {
        const given = await Promise.all(named.map((one) => this.#given(one, texts, context)));
        return {
          tools: given.flatMap(({ tools }) => tools),
          leftOut: given.flatMap(({ leftOut }) => leftOut),
          instructions: given.flatMap(({ instructions = [] }) => instructions),
        };
      },
      isReady: () => named.every(({ server, slot }) => !server.isRequired || server.headersOf || isUp(slot)),
      close: () => Promise.all(named.map(({ slot }) => this.#exit(slot))),
    };
  }

  #enter(server: McpServer): Named {
    const key = keyOf(server);
    const known = this.#slots.get(key);
    const slot = known ?? this.#slotOf(server);
    slot.agents += 1;
    this.#slots.set(key, slot);
    if (known === undefined && isReadable(server)) {
      this.#parts.warn(
        `Others can read what goes to the tool server ${server.name}, because its address has no https.`,
      );
    }
    if (known === undefined && this.#isOpen) this.#begin(slot);
    return { server, slot };
  }

  async #exit(slot: Slot): Promise<void> {
    slot.agents -= 1;
    if (slot.agents > 0) return;
    this.#slots.delete(keyOf(slot.server));
    clearInterval(slot.sweeping);
    await Promise.all([...slot.connections.values()].map(({ connection }) => connection.close()));
  }

  #slotOf(server: McpServer): Slot {
    const { name, headersOf } = server;
    const { notice, warn } = this.#parts;
    const again = headersOf === undefined ? "It is tried again." : "The next message tries it again.";
    const health = new Health((isThere, why) => {
      if (isThere) notice(`The tool server ${name} is there again.`);
      else warn(`The tool server ${name} cannot be reached. ${why} ${again}`);
    });
    const sweeping = setInterval(() => sweep(slot), IDLE_MS / 15).unref();
    const slot: Slot = { server, health, sweeping, connections: new Map(), rewritten: new Set(), agents: 0 };
    return slot;
  }

  #begin(slot: Slot): void {
    if (slot.server.headersOf === undefined) this.#entryOf(slot, EVERYBODY).connection.begin();
  }

  #entryOf(slot: Slot, whose: string): Entry {
    sweep(slot);
    const entry = slot.connections.get(whose) ?? { connection: this.#connect(slot, whose), uses: 0, usedAt: 0 };
    entry.usedAt = Date.now();
    slot.connections.delete(whose);
    slot.connections.set(whose, entry);
    return entry;
  }

  /** Keeps the connection open while `work` uses it. */
  async #using<Result>(slot: Slot, whose: string, work: (connection: Connection) => Promise<Result>): Promise<Result> {
    const entry = this.#entryOf(slot, whose);
    entry.uses += 1;
    return work(entry.connection).finally(() => {
      entry.uses -= 1;
    });
  }

  #connect({ server: { name, place }, health, rewritten }: Slot, whose: string): Connection {
    return new Connection({
      name,
      place,
      health,
      isOfOne: whose !== EVERYBODY,
      sdk: () => this.#load(),
      onRewritten: (tool) => {
        if (rewritten.has(tool) || rewritten.size > MAX_SAID) return;
        rewritten.add(tool);
        this.#parts.warn(`The tool server ${name} describes its tool ${plainText(tool)} differently than before.`);
      },
    });
  }

  #load(): Promise<Sdk> {
    this.#sdk ??= loadSdk(this.#parts.load).catch((error: unknown) => {
      this.#sdk = undefined;
      throw error;
    });
    return this.#sdk;
  }

  /** What a run gets from a server. If that is away, or its headers fail, no tools. @throws ApiError if it is required */
  async #given({ server, slot }: Named, texts: Texts, context: RunContext): Promise<Given> {
    const { name, headersOf, isRequired } = server;
    const without = (why: string) => ({ tools: [], leftOut: [`The tool server ${name} gives none: ${why}`] });
    if (headersOf !== undefined && context.user === undefined) return without("the message has no user.");
    const headers = headersOf && (() => this.#headers(server, context));
    try {
      const whose = headers === undefined ? EVERYBODY : await this.#whose(server, headers, context);
      const ask = () => this.#using(slot, whose, (connection) => connection.offer(headers));
      const offer = await within(ask, OFFER_MS, context.signal);
      if (offer === undefined && isRequired) throw unready();
      if (offer === undefined) return { tools: [], leftOut: [] };
      return toolsOf(server, offer, texts, (tool) => (args, ctx) => {
        const call = (options: CallOptions) =>
          this.#using(slot, whose, (connection) => connection.call(tool, args as Args, headers, options));
        return this.#call(server, call, ctx);
      });
    } catch (error) {
      context.signal.throwIfAborted();
      if (isRequired) throw isRefusedUser(error) ? refusal(name, error) : error;
      if (error instanceof ApiError) {
        return without([`${error.detail}.`, error.cause === undefined ? "" : reasonOf(error)].join(" ").trim());
      }
      return without(isRefusedUser(error) ? "it does not let this user in." : reasonOf(error));
    }
  }

  /** Also called after the run was stopped, since the server has to be notified of that. */
  async #headers({ name, headersOf }: McpServer, context: RunContext): Promise<Record<string, string>> {
    const at = `mcp.${name}.headers(ctx)`;
    const given = await within((signal) => headersOf?.({ ...context, signal }), this.#parts.hookMs).catch((error) => {
      throw hookFailure(at, error);
    });
    if (!isTexts(given)) throw new TypeError(`${at} must return an object of texts.`);
    for (const [header, value] of Object.entries(given)) {
      try {
        new Headers([[header, value]]);
      } catch {
        // The value is not quoted: it may be a secret.
        throw new TypeError(`${at} returned a header ${plainText(header)} that cannot be sent.`);
      }
    }
    return given;
  }

  /** Names the connection of a run, which no other user shares. */
  async #whose({ name, per }: McpServer, headers: GiveHeaders, context: RunContext): Promise<string> {
    const at = `mcp.${name}.per(ctx)`;
    const own = per ? await askAuthor(at, per, context, this.#parts.hookMs) : JSON.stringify(await headers());
    if (typeof own !== "string") throw new TypeError(`${at} must return a text.`);
    return createHash("sha256")
      .update(JSON.stringify([context.user?.id, own]))
      .digest("base64url");
  }

  async #call(
    { name, timeoutMs }: McpServer,
    call: (options: CallOptions) => Promise<CallToolResult>,
    { signal, progress }: ToolContext,
  ): Promise<unknown> {
    const startedAt = performance.now();
    let outcome: Outcome = "error";
    try {
      const result = await call({ signal, timeoutMs, onProgress: (one) => progress(wordsOf(one)) });
      if (!result.isError) outcome = "ok";
      return readCallResult(result);
    } finally {
      this.#parts.observe(name, outcome, performance.now() - startedAt);
    }
  }
}

/** Connections are kept as long as this stays the same. */
function keyOf({ name, place, headersOf }: McpServer): string {
  return JSON.stringify([name, place, headersOf !== undefined]);
}

function isUp({ connections }: Slot): boolean {
  return connections.get(EVERYBODY)?.connection.isOpen === true;
}

/** Closes connections of users that no run needs, the oldest first. */
function sweep({ connections }: Slot): void {
  for (const [whose, { connection, uses, usedAt }] of connections) {
    const isTooMuch = connections.size >= MAX_USERS || Date.now() - usedAt > IDLE_MS;
    if (whose === EVERYBODY || !isTooMuch || uses > 0) continue;
    connections.delete(whose);
    void connection.close();
  }
}

/** The message for a user whom a required server refuses. */
function refusal(server: string, cause: unknown): ApiError {
  const detail = `The tool server ${server} does not let this user in`;
  return new ApiError("forbidden", "You are not allowed to use something that the assistant needs.", { detail, cause });
}

function wordsOf({ message, progress, total }: Progress): string {
  return message || (total ? `${Math.round((100 * progress) / total)} %` : String(progress));
}

async function loadSdk(load: LoadPackage): Promise<Sdk> {
  const names = ["@modelcontextprotocol/client", "@modelcontextprotocol/client/stdio"] as const;
  return Object.assign({}, ...(await Promise.all(names.map((name) => load(name)))));
}
