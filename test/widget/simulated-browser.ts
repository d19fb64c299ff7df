/**
 * A deterministic browser with tabs. Pending work waits in lanes, and `step` does the next task of a lane chosen by a
 * seed. Time passes when the seed says so, or when nothing else is left. So a seed reproduces everything: database
 * tasks, timers, messages between tabs, and traffic with the server.
 */

import "fake-indexeddb/auto";
import "./browser-stubs.ts";
import { AsyncLocalStorage } from "node:async_hooks";
import { setImmediate as nextTurn, setTimeout as pause } from "node:timers/promises";
import { encodeFrame } from "../../server/protocol/sse.ts";
import { randomFrom } from "../support/random.ts";
import { TestStorage } from "./browser-stubs.ts";

/** How tabs receive each other's messages. Some browsers and pages have no channel. */
export type ChannelKind = "prompt" | "late" | "missing";

/** State of a page; once it is dead, none of its code runs any more. */
export class Page {
  isDead = false;
  readonly name: string;
  readonly storage: TestStorage;
  readonly listeners = new Set<{ handleEvent(event: unknown): void }>();

  constructor(name: string, storage = new TestStorage()) {
    this.name = name;
    this.storage = storage;
  }
}

/** The server's end of a connection. */
export interface Connection {
  readonly token: () => string | undefined;
  write(event: object): void;
  close(): void;
}

/** The server's handlers of incoming traffic. */
export interface SimulatedServer {
  isDown: boolean;
  info(token: string | undefined): object;
  /** Handles a message of a socket, or the body of a request. */
  receive(body: Record<string, unknown>, connection: Connection): void;
  cancel(run: string): boolean;
}

interface Task {
  readonly page: Page | undefined;
  readonly work: () => void;
}

interface Timer extends Task {
  due: number;
  readonly every: number | undefined;
}

/** The page whose code is running. */
const running = new AsyncLocalStorage<Page | undefined>();

/** More tasks than minutes of normal work contain. */
const MANY = 20_000;

/** Delay of a late channel, in milliseconds. */
const LATE_MS = 3_000;

/** Each page has its own host name, so that in this process pages share only what a browser shares. */
const sharedName = (text: string) => text.replace(/page\d+\.test/, "page.test");

export class SimulatedBrowser {
  now = 1_700_000_000_000;
  /** Time in milliseconds that loading code may take, which is not simulated; 0 if all is loaded. */
  loadMs = 0;
  readonly server: SimulatedServer;
  readonly random: () => number;
  readonly #lanes = new Map<string, Task[]>();
  readonly #timers = new Set<Timer>();
  readonly #channel: ChannelKind;
  readonly #channels = new Set<SimulatedChannel>();
  readonly #localStorage = new TestStorage();
  readonly #sockets = new Set<SimulatedSocket>();
  #count = 0;

  constructor(seed: number, channel: ChannelKind, serverOf: (browser: SimulatedBrowser) => SimulatedServer) {
    this.random = randomFrom(seed);
    this.#channel = channel;
    this.server = serverOf(this);
  }

  pick<Value>(values: readonly Value[]): Value {
    return values[Math.floor(this.random() * values.length)] as Value;
  }

  /** Runs work as part of a page. */
  in<Result>(page: Page | undefined, work: () => Result): Result {
    return running.run(page, work);
  }

  /** Adds a task to a lane, whose tasks run in order. */
  later(lane: string, work: () => void, page: Page | null | undefined = running.getStore()): void {
    this.#lanes.set(lane, [...(this.#lanes.get(lane) ?? []), { page: page ?? undefined, work }]);
  }

  number(): number {
    this.#count += 1;
    return this.#count;
  }

  /** Runs the next task, if any. Sometimes time passes before. */
  async step(): Promise<boolean> {
    if (this.random() < 0.02) await this.#passTime(this.now + 2_000);
    const lanes = [...this.#lanes.keys()];
    if (lanes.length === 0) return false;
    const lane = this.pick(lanes);
    const [task, ...rest] = this.#lanes.get(lane) ?? [];
    if (rest.length > 0) this.#lanes.set(lane, rest);
    else this.#lanes.delete(lane);
    if (task) await this.#do(task);
    return true;
  }

  /** Runs all tasks that are due within `ms` milliseconds. */
  async settle(ms: number): Promise<void> {
    const end = this.now + ms;
    let count = 0;
    const next = async () => {
      count += 1;
      if (count > MANY) throw new Error(`this never comes to rest: ${[...this.#lanes.keys()]}`);
      return this.step();
    };
    do {
      do while (await next());
      while (await this.#loads());
    } while (await this.#passTime(end));
    this.now = Math.max(this.now, end);
  }

  /** Waits for code that may still be loading. Resolves with whether there are tasks then. */
  async #loads(): Promise<boolean> {
    if (this.loadMs > 0) await pause(this.loadMs);
    return this.#lanes.size > 0;
  }

  /** Advances time to the next timer, up to `end`. */
  async #passTime(end: number): Promise<boolean> {
    const [next] = [...this.#timers].filter(({ page }) => !page?.isDead).sort((a, b) => a.due - b.due);
    if (!next || next.due > end) return false;
    this.now = Math.max(this.now, next.due);
    if (next.every === undefined) this.#timers.delete(next);
    else next.due = this.now + next.every;
    await this.#do(next);
    return true;
  }

  async #do({ page, work }: Task): Promise<void> {
    if (page?.isDead) return;
    this.in(page, work);
    // Lets all promises that follow from it settle.
    await nextTurn();
  }

  /** Cuts all connections, like a network failure. Data under way may have arrived. */
  cut(): void {
    for (const socket of this.#sockets) socket.cut();
  }

  /** Replaces the process's globals by this browser. Returns a function that restores them. */
  install(): () => void {
    const timer = (work: () => void, ms = 0, every?: number): Timer => {
      const added = { page: running.getStore(), work, due: this.now + Number(ms), every };
      this.#timers.add(added);
      return added;
    };
    const clear = (it: Timer) => void this.#timers.delete(it);
    const browser = this;
    const listening = () => running.getStore()?.listeners ?? new Set();
    const globals: PropertyDescriptorMap = {
      setTimeout: {
        value: (work: (...given: unknown[]) => void, ms?: number, ...given: unknown[]) =>
          timer(() => work(...given), ms),
      },
      setInterval: { value: (work: () => void, ms?: number) => timer(work, ms, Math.max(1, Number(ms))) },
      clearTimeout: { value: clear },
      clearInterval: { value: clear },
      // The database's tasks continue after a page has ended.
      setImmediate: { value: (work: () => void) => this.later("database", work, null) },
      sessionStorage: { get: () => running.getStore()?.storage ?? new TestStorage() },
      localStorage: { get: () => this.#sharedStorage },
      fetch: { value: (url: URL | string, init?: RequestInit) => this.#fetch(String(url), init) },
      WebSocket: {
        value: class extends SimulatedSocket {
          constructor(url: URL) {
            super(browser, String(url), running.getStore());
            browser.#sockets.add(this);
          }
        },
      },
      BroadcastChannel: {
        value: class extends SimulatedChannel {
          constructor(name: string) {
            if (browser.#channel === "missing") throw new DOMException("forbidden", "SecurityError");
            super(sharedName(name), running.getStore(), (it, data) => browser.#post(it, data));
            browser.#channels.add(this);
          }
        },
      },
      addEventListener: { value: (_: string, it: never) => listening().add(it) },
      removeEventListener: { value: (_: string, it: never) => listening().delete(it) },
    };
    const all: [object, PropertyDescriptorMap][] = [
      [globalThis, globals],
      [Date, { now: { value: () => this.now } }],
      [performance, { now: { value: () => this.now - 1_600_000_000_000 } }],
      [Math, { random: { value: this.random } }],
      [crypto, { getRandomValues: { value: (bytes: Uint8Array) => bytes.map(() => this.random() * 256) } }],
      [AbortSignal, { timeout: { value: (ms: number) => this.#signalAfter(ms, timer) } }],
    ];
    const undo = all.map(([target, properties]) => {
      const before = Object.keys(properties).map(
        (name) => [name, Object.getOwnPropertyDescriptor(target, name)] as const,
      );
      for (const [name, it] of Object.entries(properties)) {
        Object.defineProperty(target, name, { ...it, configurable: true, ...("value" in it && { writable: true }) });
      }
      return () => {
        for (const [name, it] of before) {
          if (it) Object.defineProperty(target, name, it);
          else Reflect.deleteProperty(target, name);
        }
      };
    });
    return () => {
      for (const it of undo) it();
    };
  }

  #signalAfter(ms: number, timer: (work: () => void, ms: number) => void): AbortSignal {
    const controller = new AbortController();
    timer(() => controller.abort(), ms);
    return controller.signal;
  }

  /** Pages get an event when another one changes the storage. */
  get #sharedStorage() {
    const storage = this.#localStorage;
    const page = running.getStore();
    const changed = (key: string, newValue: string | null) => {
      for (const other of this.pages) {
        if (other === page) continue;
        const event = () => {
          for (const it of other.listeners) it.handleEvent({ key: key.replace("page.test", other.name), newValue });
        };
        this.later(`storage to ${other.name}`, event, other);
      }
    };
    return {
      getItem: (name: string) => storage.getItem(sharedName(name)),
      setItem: (name: string, value: string) => {
        storage.setItem(sharedName(name), value);
        changed(sharedName(name), value);
      },
      removeItem: (name: string) => {
        if (storage.getItem(sharedName(name)) === null) return;
        storage.removeItem(sharedName(name));
        changed(sharedName(name), null);
      },
    };
  }

  readonly pages = new Set<Page>();

  #post(from: SimulatedChannel, data: unknown): void {
    for (const to of this.#channels) {
      if (to === from || to.page?.isDead || to.name !== from.name) continue;
      const copy = structuredClone(data);
      const deliver = () => to.isClosed || to.onmessage?.({ data: copy });
      const arrive = () => this.later(`${from.page?.name} to ${to.page?.name}`, deliver, to.page);
      if (this.#channel === "late") this.in(undefined, () => setTimeout(arrive, LATE_MS));
      else arrive();
    }
  }

  /** A server's response, with only the members that are used. */
  #fetch(url: string, { headers = {}, body, signal, keepalive }: RequestInit = {}): Promise<unknown> {
    const { pathname } = new URL(url);
    const { "x-user-token": token, "last-event-id": after } = headers as Record<string, string>;
    const page = running.getStore();
    const lane = `request ${this.number()}`;
    return new Promise((resolve, reject) => {
      if (page?.isDead) return;
      const fail = () => reject(new TypeError("failed to fetch"));
      signal?.addEventListener("abort", fail);
      const answer = (value: object) => this.later(lane, () => resolve(value), page);
      const arrive = () => {
        if (signal?.aborted && !keepalive) return;
        const [, run = "", cancel] = /^\/api\/chat\/runs\/([^/]+)(\/cancel)?$/.exec(pathname) ?? [];
        if (this.server.isDown) this.later(lane, fail, page);
        else if (pathname === "/api/info") answer(responseOf(200, this.server.info(token)));
        else if (cancel) answer(responseOf(this.server.cancel(run) ? 200 : 404, {}));
        else if (pathname === "/api/feedback") answer(responseOf(200, {}));
        else {
          const stream = new SimulatedStream((work) => this.later(lane, work, page), signal ?? undefined);
          answer(stream);
          const request = run ? { type: "resume", run, after: Number(after) } : JSON.parse(String(body));
          this.server.receive(request, { token: () => token, write: stream.write, close: stream.cut });
        }
      };
      this.later(lane, arrive, null);
    });
  }
}

const responseOf = (status: number, body: object) => ({
  ok: status === 200,
  status,
  headers: new Headers({ "content-type": "application/json" }),
  text: async () => JSON.stringify(body),
  json: async () => body,
});

/** A streamed HTTP response. */
class SimulatedStream {
  readonly ok = true;
  readonly status = 200;
  readonly headers = new Headers({ "content-type": "text/event-stream" });
  readonly #later: (work: () => void) => void;
  readonly #chunks: (Uint8Array | Error)[] = [];
  #wake = () => {};

  constructor(later: (work: () => void) => void, signal: AbortSignal | undefined) {
    this.#later = later;
    signal?.addEventListener("abort", () => this.#push(new Error("aborted")));
  }

  readonly body = {
    getReader: () => ({
      read: async () => {
        while (this.#chunks.length === 0) await new Promise<void>((resolve) => (this.#wake = resolve));
        const value = this.#chunks.shift();
        if (value instanceof Error) throw value;
        return { done: false, value };
      },
    }),
  };

  readonly write = (event: object) =>
    this.#later(() => this.#push(new TextEncoder().encode(encodeFrame(event as never))));
  readonly cut = () => this.#later(() => this.#push(new Error("cut")));

  #push(chunk: Uint8Array | Error): void {
    this.#chunks.push(chunk);
    this.#wake();
  }
}

class SimulatedChannel {
  onmessage: ((event: { readonly data: unknown }) => void) | undefined;
  isClosed = false;
  readonly name: string;
  readonly page: Page | undefined;
  readonly #post: (channel: SimulatedChannel, data: unknown) => void;

  constructor(name: string, page: Page | undefined, post: (channel: SimulatedChannel, data: unknown) => void) {
    this.name = name;
    this.page = page;
    this.#post = post;
  }

  postMessage(data: unknown): void {
    this.#post(this, data);
  }

  close(): void {
    this.isClosed = true;
  }
}

type SocketEvent = { readonly data?: string; readonly code?: number };

class SimulatedSocket {
  static readonly OPEN = 1;
  readyState = 0;
  readonly bufferedAmount = 0;
  readonly #browser: SimulatedBrowser;
  readonly #page: Page | undefined;
  readonly #lane: string;
  readonly #listeners: [string, (event: SocketEvent) => void][] = [];
  #token: string | undefined;
  #isCut = false;

  constructor(browser: SimulatedBrowser, _url: string, page: Page | undefined) {
    this.#browser = browser;
    this.#page = page;
    this.#lane = `socket ${browser.number()}`;
    this.#down(() => {
      if (browser.server.isDown) {
        this.#fire("error");
        this.#end();
      } else if (this.readyState === 0) {
        this.readyState = 1;
        this.#fire("open");
      }
    });
  }

  addEventListener(type: string, listener: (event: SocketEvent) => void): void {
    this.#listeners.push([type, listener]);
  }

  send(data: string): void {
    if (this.readyState !== 1 || this.#page?.isDead) return;
    const arrive = () => {
      // Whatever follows lost data is lost, too.
      this.#isCut ||= this.#browser.server.isDown;
      if (this.#isCut) return;
      const body = JSON.parse(data);
      if (body.type === "authenticate") this.#token = body.token || undefined;
      else
        this.#browser.server.receive(body, { token: () => this.#token, write: this.#write, close: () => this.cut() });
    };
    this.#browser.later(`${this.#lane} up`, arrive, null);
  }

  close(): void {
    if (this.readyState < 2) this.readyState = 2;
    this.#down(() => this.#end());
  }

  cut(): void {
    if (this.readyState === 3) return;
    this.#isCut = this.#browser.random() < 0.5;
    this.readyState = 2;
    this.#down(() => this.#end());
  }

  readonly #write = (event: object) =>
    this.#down(() => {
      if (this.readyState === 1) this.#fire("message", { data: JSON.stringify(event) });
    });

  #down(work: () => void): void {
    this.#browser.later(`${this.#lane} down`, work, this.#page);
  }

  #end(): void {
    if (this.readyState === 3) return;
    this.readyState = 3;
    this.#fire("close", { code: 1006 });
  }

  #fire(type: string, event: SocketEvent = {}): void {
    for (const [name, listener] of this.#listeners) if (name === type) listener(event);
  }
}
