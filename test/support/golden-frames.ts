/** Responses of a door in test/fixtures/doors: recorded from a real server, and replayed to the client. */

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { text as textOf } from "node:stream/consumers";
import { REPOSITORY } from "./command.ts";
import { listen } from "./listen.ts";
import type { Cleanup } from "./start-server.ts";

/** A request of the client, and its response. */
export interface Exchange {
  asked: string;
  status: number;
  type: string;
  /** Other headers that the client reads. */
  headers?: Record<string, string>;
  answer: string;
}

export interface FramesOptions {
  /** Names a request; requests with the same name are answered in order. */
  nameOf(message: IncomingMessage, body: string): string;
  /** The response without values that differ on each run. */
  steady(answer: string): string;
  /** Headers to pass on, apart from the content type; `handedOn` ones differ on each run and are not recorded. */
  kept?: readonly string[];
  handedOn?: readonly string[];
}

const FOLDER = join(REPOSITORY, "test/fixtures/doors");
const fileOf = (name: string) => join(FOLDER, `${name}.json`);

/** The recorded exchanges. */
export const framesOf = (name: string): Exchange[] => JSON.parse(readFileSync(fileOf(name), "utf8"));

/** Records these exchanges if `FRAMES=write` is set. */
export function keepFrames(name: string, said: readonly Exchange[]): void {
  if (process.env.FRAMES !== "write") return;
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(fileOf(name), `${JSON.stringify(said, null, 2)}\n`);
}

/** A proxy in front of the server on this port that collects all exchanges. */
export async function recordFrames(t: Cleanup, port: number, options: FramesOptions) {
  const { nameOf, steady, kept = [], handedOn = [] } = options;
  const said: Exchange[] = [];
  const relay = createServer(async (req, res) => {
    const body = await textOf(req);
    const init = { method: req.method ?? "", headers: withoutHost(req), ...(body === "" ? {} : { body }) };
    const answer = await fetch(`http://127.0.0.1:${port}${req.url}`, init);
    const text = await answer.text();
    const type = answer.headers.get("content-type") ?? "";
    const pick = (names: readonly string[]) =>
      Object.fromEntries(
        names.flatMap((name) => (answer.headers.has(name) ? [[name, answer.headers.get(name) ?? ""]] : [])),
      );
    const headers = pick(kept);
    const has = Object.keys(headers).length > 0 ? { headers } : {};
    said.push({ asked: nameOf(req, body), status: answer.status, type, ...has, answer: steady(text) });
    res.writeHead(answer.status, { "content-type": type, ...headers, ...pick(handedOn) }).end(text);
  });
  return { said, url: await listen(t, relay) };
}

/** Answers a client with the recorded responses; 500 if a request was not recorded. */
export async function playFrames(t: Cleanup, name: string, { nameOf }: FramesOptions): Promise<string> {
  const left = framesOf(name);
  const player = createServer(async (req, res) => {
    const asked = nameOf(req, await textOf(req));
    const index = left.findIndex((one) => one.asked === asked);
    const [exchange] = index < 0 ? [] : left.splice(index, 1);
    const headers = { "content-type": exchange?.type, ...exchange?.headers };
    res.writeHead(exchange?.status ?? 500, headers).end(exchange?.answer);
  });
  return listen(t, player);
}

function withoutHost({ headers }: IncomingMessage): Record<string, string> {
  const {
    host: _host,
    connection: _connection,
    "content-length": _length,
    "transfer-encoding": _coding,
    ...rest
  } = headers;
  return rest as Record<string, string>;
}
