/** The built command with two workers, and connections that stay at one of them. */

import assert from "node:assert/strict";
import { Agent, type IncomingMessage, request } from "node:http";
import { createParser } from "eventsource-parser";
import type { NumberedEvent } from "../../server/protocol/events.ts";
import { type CommandOptions, type StartedCommand, start } from "./command.ts";
import { DEADLINE_MS, within } from "./deadline.ts";
import { connect, type SocketClient } from "./socket-client.ts";
import type { Cleanup } from "./start-server.ts";
import { temporaryProject } from "./temporary-project.ts";

/**
 * Its name says which process answers, and where that process lets its tool "hold" end, or throws where nobody
 * catches. The tool tells the process, too. `TEST_MODEL` is another model than the demo one.
 */
const AGENT = `
  import { createServer } from "node:http";
  const held = [];
  const releasing = [];
  const meet = () => {
    if (held.length === 0) return;
    for (const res of releasing.splice(0)) res.end();
    for (const end of held.splice(0)) end("held by " + process.pid);
  };
  const hold = () => new Promise((end) => {
    held.push(end);
    if (releasing.length > 0) meet();
  });
  const gate = createServer((req, res) => {
    if (req.url === "/throw") {
      res.end();
      setImmediate(() => { throw new Error("nobody catches this"); });
    } else {
      releasing.push(res);
      meet();
    }
  });
  // Otherwise node:cluster would have all workers share the port.
  await new Promise((resolve) => gate.listen({ port: 0, host: "127.0.0.1", exclusive: true }, resolve));
  export default {
    name: process.pid + " http://127.0.0.1:" + gate.address().port, model: process.env.TEST_MODEL ?? "demo",
    tools: [{ name: "hold", description: "Waits.", parameters: { type: "object" }, execute: hold }],
  };`;

export interface Ask {
  method?: string;
  headers?: Record<string, string>;
  body?: unknown;
}

/** One worker, and a connection to it that is kept open. */
export class WorkerLine {
  readonly pid: number;
  readonly #gate: string;
  readonly #url: string;
  readonly #connection: Agent;

  constructor(url: string, connection: Agent, name: string) {
    const [pid, gate = ""] = name.split(" ");
    this.pid = Number(pid);
    this.#gate = gate;
    this.#url = url;
    this.#connection = connection;
  }

  /** Asks over this line, which takes one request at a time. */
  ask(path: string, ask: Ask = {}): Promise<IncomingMessage> {
    return askOver(this.#connection, `${this.#url}${path}`, ask);
  }

  async status(path: string, ask: Ask = {}): Promise<number | undefined> {
    const answer = await this.ask(path, ask);
    await textOf(answer);
    return answer.statusCode;
  }

  chat(body: object, headers: Record<string, string> = {}): Promise<IncomingMessage> {
    return this.ask("/api/chat", { method: "POST", headers, body });
  }

  /** Turns the line into a WebSocket. */
  socket(t: Cleanup, query = "", headers: Record<string, string> = {}): Promise<SocketClient> {
    const url = `${this.#url.replace("http", "ws")}/ws/chat${query}`;
    return connect(t, url, { agent: this.#connection, headers });
  }

  /** Lets the calls of the tool that wait in this worker end; the first one may be yet to come. */
  async release(): Promise<void> {
    await fetch(this.#gate, { signal: AbortSignal.timeout(DEADLINE_MS) });
  }

  /** Has the worker throw where nobody catches. */
  async breakDown(): Promise<void> {
    await fetch(`${this.#gate}/throw`, { signal: AbortSignal.timeout(DEADLINE_MS) });
  }
}

export interface Workers extends StartedCommand {
  /** A line to each of the two workers that are there at first. */
  lines: [WorkerLine, WorkerLine];
  /** Another line to a worker; `undefined`: to one of a process that `without` does not name. */
  line(pid: number | undefined, without?: readonly number[]): Promise<WorkerLine>;
}

/** Starts two workers and waits until both have answered. */
export async function startWorkers(t: Cleanup, options: CommandOptions = {}): Promise<Workers> {
  const folder = temporaryProject(t, { "agent.ts": AGENT });
  const started = await start(t, [folder, "--workers", "2"], {
    ...options,
    env: { PARLEY_LOG: "json", ...options.env },
  });
  const line = (pid: number | undefined, without: readonly number[] = []) =>
    lineTo(t, started.url, (found) => (pid === undefined ? !without.includes(found) : found === pid));
  const first = await line(undefined);
  const second = await line(undefined, [first.pid]);
  return { ...started, lines: [first, second], line };
}

/** How long a worker may take to answer before another connection is tried. */
const LOST_MS = 1_000;

/** Opens connections until one reaches the right process: they are given out in turn. */
async function lineTo(t: Cleanup, url: string, isRight: (pid: number) => boolean) {
  const end = Date.now() + 10_000;
  while (Date.now() < end) {
    const connection = new Agent({ keepAlive: true, maxSockets: 1 });
    t.after(() => connection.destroy());
    // A connection that was on its way to a worker when that was killed is lost: nobody answers it.
    const lost = setTimeout(() => connection.destroy(), LOST_MS);
    const info = await askOver(connection, `${url}/api/info`, {}).then(textOf, () => undefined);
    clearTimeout(lost);
    if (info !== undefined) {
      const line = new WorkerLine(url, connection, JSON.parse(info).name);
      if (isRight(line.pid)) return line;
    }
    connection.destroy();
  }
  throw new Error("no connection reached the worker");
}

function askOver(agent: Agent, url: string, ask: Ask): Promise<IncomingMessage> {
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    const headers = { "content-type": "application/json", ...ask.headers };
    const sent = request(url, { agent, method: ask.method ?? "GET", headers }, resolve);
    sent.on("error", reject);
    sent.end(ask.body === undefined ? undefined : JSON.stringify(ask.body));
  });
  return within(answered, `the answer to ${url}`);
}

export async function textOf(answer: IncomingMessage): Promise<string> {
  let text = "";
  for await (const piece of answer.setEncoding("utf8")) text += piece;
  return text;
}

/** The events of a stream, one at a time. */
export class EventReader {
  readonly #answer: IncomingMessage;
  readonly #pieces: AsyncIterator<string>;
  readonly #events: NumberedEvent[] = [];
  readonly #parser = createParser({
    onEvent: ({ data }) => this.#events.push(JSON.parse(data)),
  });

  constructor(answer: IncomingMessage) {
    assert.equal(answer.statusCode, 200);
    this.#answer = answer;
    this.#pieces = answer.setEncoding("utf8")[Symbol.asyncIterator]();
  }

  /** `undefined` at the end. @throws when the line is cut */
  async next(): Promise<NumberedEvent | undefined> {
    while (this.#events.length === 0) {
      const { done, value } = await within(this.#pieces.next(), "the next event");
      if (done) return undefined;
      this.#parser.feed(value);
    }
    return this.#events.shift();
  }

  async until(type: NumberedEvent["type"]): Promise<NumberedEvent[]> {
    const events: NumberedEvent[] = [];
    for (;;) {
      const event = await this.next();
      assert.ok(event, `the stream ended before ${type}`);
      events.push(event);
      if (event.type === type) return events;
    }
  }

  /** Cuts the line, as a lost network does. */
  cut(): void {
    this.#answer.socket.destroy();
  }
}
