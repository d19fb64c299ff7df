/** One connection to an MCP server: opened when it is needed, reopened when it was lost, with the list of its tools. */

import type { CallToolResult, Client, Progress, Transport } from "@modelcontextprotocol/client";
import type { McpServer } from "../agent/mcp-definition.ts";
import { ToolError } from "../agent/tool-definition.ts";
import { type Late, within } from "../config/within.ts";
import { callFailure, hasNotRun, isRefusal, isRefusedUser, reasonOf } from "./failures.ts";
import { type Offer, readOffer } from "./offer.ts";
import { createClient, type GiveHeaders, requesting, type Sdk } from "./transport.ts";

/** How long opening may take, with the first list: a program may have to be installed first. */
const OPEN_MS = { server: 10_000, program: 30_000 };
/** How long a list may take, or opening for a call. */
const CHECK_MS = 10_000;
/** How often a shared connection is checked. The list of a user's connection is read again after twice this time. */
const CHECK_EVERY_MS = 30_000;
/** Approximate delay after the first failure. It doubles with each further one, up to `LAST_WAIT_MS`. */
const FIRST_WAIT_MS = 1_000;
const LAST_WAIT_MS = 30_000;
/** How long a run waits for its own attempt to connect. */
const TRY_MS = 2_000;
/** How long a server may take to end a session. */
const END_MS = 1_000;

/** The health of a server, shared by all connections to it. */
export class Health {
  /** Failures since the server was last available for a while. */
  failures = 0;
  /** When the next attempt is due. */
  retryAt = Number.NEGATIVE_INFINITY;
  #wasThere = true;
  readonly #onChange: (isThere: boolean, why: string) => void;

  /** `onChange` is called once for each change; a server counts as available until it fails. */
  constructor(onChange: (isThere: boolean, why: string) => void) {
    this.#onChange = onChange;
  }

  report(isThere: boolean, why = ""): void {
    if (!isThere) this.failures += 1;
    if (isThere !== this.#wasThere) this.#onChange(isThere, why.trim());
    this.#wasThere = isThere;
  }
}

export interface ConnectionParts extends Pick<McpServer, "name" | "place"> {
  readonly health: Health;
  sdk(): Promise<Sdk>;
  /** Whether it belongs to one user: then each of its requests belongs to a run, and only a run opens it. */
  readonly isOfOne: boolean;
  /** Called when the server describes a tool differently than before. */
  onRewritten(tool: string): void;
}

export interface CallOptions {
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  onProgress(progress: Progress): void;
}

export class Connection {
  readonly #parts: ConnectionParts;
  /** The client for the next call. */
  #client: Client | undefined;
  #opening: Promise<Client> | undefined;
  #checking: Promise<void> | undefined;
  /** The last valid offer: kept while the server is away. */
  #offer: Offer | undefined;
  #offeredAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  readonly #closed = new AbortController();
  /** Clients that are not closed: calls on one that was replaced may still succeed. */
  readonly #clients = new Map<Client, { readonly transport: Transport; calls: number }>();

  readonly #ending = new Set<Promise<void>>();

  constructor(parts: ConnectionParts) {
    this.#parts = parts;
  }

  get isOpen(): boolean {
    return this.#client !== undefined;
  }

  /** Opens the connection. A shared one is kept open from now on. */
  begin(): void {
    this.#open().catch(() => {});
  }

  /**
   * What a run may use. Waits for a server that has not failed. A failed server delays only the runs that try it again: they
   * get the last list, since the server may be back by the time of a call. @throws the server's error if it refuses the user
   */
  offer(headers: GiveHeaders | undefined): Promise<Offer | undefined> {
    return requesting({ connection: this, headers }, async () => {
      const { health, isOfOne } = this.#parts;
      const isOld = performance.now() - this.#offeredAt > 2 * CHECK_EVERY_MS;
      if (this.#client !== undefined) {
        if (isOld) await this.#check(this.#client);
      } else if (health.failures === 0) {
        await this.#open().catch((error: unknown) => {
          if (isOfOne && isRefusedUser(error)) throw error;
        });
      } else if (performance.now() > health.retryAt) {
        await within(() => this.#open(), TRY_MS).catch(() => {});
      }
      return this.#offer;
    });
  }

  /** Calls a tool. A call that the server may have seen is never repeated. @throws ToolError, Late, or the reason of an abort */
  async call(
    tool: string,
    args: Record<string, unknown>,
    headers: GiveHeaders | undefined,
    options: CallOptions,
  ): Promise<CallToolResult> {
    const over = new AbortController();
    const work = async () => {
      const client = await this.#openFor(options.signal);
      try {
        return await this.#ask(client, tool, args, options);
      } catch (error) {
        if (options.signal.aborted || !hasNotRun(error)) throw this.#failureOf(error, client, options);
        this.#leave(client);
      }
      const again = await this.#openFor(options.signal);
      return this.#ask(again, tool, args, options).catch((error: unknown) => {
        throw this.#failureOf(error, again, options);
      });
    };
    try {
      return await requesting({ connection: this, headers, call: over.signal }, work);
    } finally {
      // The server may still be answering a call that was given up.
      over.abort();
    }
  }

  async close(): Promise<void> {
    this.#closed.abort(new Error("The connection was closed."));
    clearTimeout(this.#timer);
    await this.#opening?.catch(() => {});
    this.#client = undefined;
    for (const client of this.#clients.keys()) this.#end(client);
    await Promise.all(this.#ending);
  }

  async #ask(client: Client, name: string, args: Record<string, unknown>, options: CallOptions) {
    const { signal, timeoutMs: timeout, onProgress: onprogress } = options;
    const use = this.#clients.get(client) ?? { calls: 0 };
    use.calls += 1;
    try {
      const limits = { signal, timeout, resetTimeoutOnProgress: true, onprogress };
      return await client.callTool({ name, arguments: args }, limits);
    } finally {
      use.calls -= 1;
      if (this.#client !== client) this.#leave(client);
    }
  }

  async #openFor(signal: AbortSignal): Promise<Client> {
    try {
      return await within(() => this.#open(), CHECK_MS, signal);
    } catch {
      signal.throwIfAborted();
      throw new ToolError(`The tool server ${this.#parts.name} cannot be reached.`);
    }
  }

  /** All callers wait for one attempt. */
  async #open(): Promise<Client> {
    this.#closed.signal.throwIfAborted();
    if (this.#client !== undefined) return this.#client;
    this.#opening ??= this.#attempt().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  async #attempt(): Promise<Client> {
    const { place, isOfOne, sdk, health } = this.#parts;
    clearTimeout(this.#timer);
    const maxMs = OPEN_MS["url" in place ? "server" : "program"];
    let lastWords = () => "";
    let made: Client | undefined;
    try {
      const { client, transport, ...more } = createClient(await sdk(), place, { connection: this, isOfOne });
      ({ lastWords } = more);
      made = client;
      this.#clients.set(client, { transport, calls: 0 });
      client.onclose = () => {
        this.#clients.delete(client);
        if (this.#client === client) this.#fail(`It has ended. ${lastWords()}`);
      };
      client.setNotificationHandler("notifications/tools/list_changed", () => {
        this.#offeredAt = Number.NEGATIVE_INFINITY;
      });
      const open = async (signal: AbortSignal) => {
        await client.connect(transport, { signal, timeout: maxMs });
        await this.#list(client, signal, maxMs);
      };
      await within(open, maxMs, this.#closed.signal);
      this.#client = client;
      health.report(true);
      if (isOfOne) health.failures = 0;
      this.#checkLater(client);
      return client;
    } catch (error) {
      if (made !== undefined) this.#end(made);
      // A refusal of one user says nothing about the server.
      if (!(isOfOne && isRefusedUser(error))) this.#fail(`${reasonOf(error)} ${lastWords()}`);
      throw error;
    }
  }

  #checkLater(client: Client): void {
    if (!this.#parts.isOfOne) this.#later(CHECK_EVERY_MS, () => void this.#check(client, { unlessBusy: true }));
  }

  /** Checks the server by reading its list. A program may be unable to do so during a call, hence `unlessBusy`. */
  #check(client: Client, { unlessBusy = false } = {}): Promise<void> {
    this.#checking ??= this.#checkNow(client, unlessBusy).finally(() => {
      this.#checking = undefined;
    });
    return this.#checking;
  }

  async #checkNow(client: Client, unlessBusy: boolean): Promise<void> {
    const isBusy = (this.#clients.get(client)?.calls ?? 0) > 0;
    if (unlessBusy && isBusy) return this.#checkLater(client);
    try {
      await within((signal) => this.#list(client, signal, CHECK_MS), CHECK_MS, this.#closed.signal);
      if (this.#client !== client) return;
      this.#parts.health.failures = 0;
      this.#checkLater(client);
    } catch (error) {
      if (this.#client !== client || this.#closed.signal.aborted) return;
      this.#leave(client);
      if (hasNotRun(error)) await this.#open().catch(() => {});
      else if (!(this.#parts.isOfOne && isRefusedUser(error))) this.#fail(reasonOf(error));
    }
  }

  async #list(client: Client, signal: AbortSignal, timeout: number): Promise<void> {
    const { tools } = await client.listTools(undefined, { signal, timeout, cacheMode: "refresh" });
    this.#offer = readOffer(tools, client.getInstructions(), this.#offer, this.#parts.onRewritten);
    this.#offeredAt = performance.now();
  }

  #failureOf(error: unknown, client: Client, { signal, timeoutMs }: CallOptions): ToolError | Late {
    signal.throwIfAborted();
    if (!isRefusal(error)) void this.#check(client);
    return callFailure(error, this.#parts.name, timeoutMs);
  }

  /** Stops using this client for further calls. */
  #leave(client: Client): void {
    if (this.#client === client) this.#client = undefined;
    if (this.#clients.get(client)?.calls === 0) this.#end(client);
  }

  #end(client: Client): void {
    const transport = this.#clients.get(client)?.transport;
    this.#clients.delete(client);
    const ending: Promise<void> = end(client, transport).finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }

  /** Records that the server is away. A shared connection is opened again later. */
  #fail(why: string): void {
    const { health, isOfOne } = this.#parts;
    this.#client = undefined;
    if (this.#closed.signal.aborted) return;
    const wait = Math.min(LAST_WAIT_MS, FIRST_WAIT_MS * 2 ** health.failures) * (0.5 + Math.random() / 2);
    health.retryAt = performance.now() + wait;
    health.report(false, why);
    if (!isOfOne) this.#later(wait, () => this.begin());
  }

  #later(ms: number, work: () => void): void {
    clearTimeout(this.#timer);
    if (!this.#closed.signal.aborted) this.#timer = setTimeout(work, ms).unref();
  }
}

/** Ends the session, if there is one, and closes the connection; a program has a few seconds to end, too. */
async function end(client: Client, transport: Transport | undefined): Promise<void> {
  if (transport !== undefined && "terminateSession" in transport) {
    await within(() => (transport as { terminateSession(): Promise<void> }).terminateSession(), END_MS).catch(() => {});
  }
  await client.close().catch(() => {});
}
