/** A proxy between Parley and a server that compares the server's streams with recorded ones. */

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { after, test } from "node:test";
import { isRecord } from "../../server/protocol/json.ts";
import { listen } from "../support/listen.ts";
import type { Cleanup } from "../support/start-server.ts";

type Event = Record<string, unknown>;

const FOLDER = new URL("../fixtures/agents/python/", import.meta.url);

export class Recorder {
  readonly #name: string;
  readonly #streams: Event[][] = [];

  constructor(name: string) {
    this.#name = name;
  }

  /** Starts the proxy; returns its origin, to be used in place of the server's. */
  async start(target: string): Promise<string> {
    const server = createServer((req, res) => {
      const url = new URL(req.url ?? "", target);
      const sent = request(url, { method: req.method, headers: { ...req.headers, host: url.host } }, (answer) => {
        let text = "";
        answer.on("data", (chunk) => (text += chunk));
        answer.on("end", () => this.#streams.push(eventsIn(text)));
        res.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(res);
      });
      sent.on("error", () => res.destroy());
      res.on("close", () => sent.destroy());
      req.pipe(sent);
    });
    return listen({ after } as Cleanup, server);
  }

  /** Asserts that the recorded streams have the shapes of all events; `RECORD=yes` records them again. */
  compare(title: string): void {
    const file = new URL(`${this.#name}.jsonl`, FOLDER);
    test(`${title}: what it has sent has the shapes that are recorded of it`, () => {
      const known = new Set<string>();
      if (process.env.RECORD === undefined) {
        for (const line of readFileSync(file, "utf8").trim().split("\n")) addTo(known, JSON.parse(line));
        const sent = new Set<string>();
        for (const stream of this.#streams) addTo(sent, cut(stream));
        const without = (all: Set<string>, others: Set<string>) => [...all].filter((shape) => !others.has(shape));
        const differences = { notRecorded: without(sent, known), notSent: without(known, sent) };
        assert.deepEqual(differences, { notRecorded: [], notSent: [] });
        return;
      }
      const lines = this.#streams.map(cut).filter((stream) => {
        const isNew = !known.has(orderOf(stream));
        return addTo(known.add(orderOf(stream)), stream).size > 0 || isNew;
      });
      mkdirSync(FOLDER, { recursive: true });
      writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
    });
  }
}

function eventsIn(text: string): Event[] {
  const data = text.split("\n").filter((line) => line.startsWith("data:"));
  return data
    .map((line) => line.slice("data:".length).trim())
    .flatMap((one) => (one === "[DONE]" ? [] : [JSON.parse(one)]));
}

/** The types of the events in order, without adjacent duplicates. */
function orderOf(stream: readonly Event[]): string {
  const types = stream.map(({ type, item }) => `${type} ${isRecord(item) ? item.type : ""}`);
  return types.filter((type, n) => type !== types[n - 1]).join();
}

/** Adds the shapes of these events; returns the new ones. */
function addTo(known: Set<string>, stream: readonly Event[]): Set<string> {
  const shapes = new Set(stream.map((event) => JSON.stringify(shapeOf(event))));
  const unknown = new Set([...shapes].filter((shape) => !known.has(shape)));
  for (const shape of unknown) known.add(shape);
  return unknown;
}

/** The keys of a value and the types of its values. */
function shapeOf(value: unknown, key = ""): unknown {
  if (Array.isArray(value)) return [...new Set(value.map((one) => JSON.stringify(shapeOf(one))))].sort();
  if (isRecord(value)) {
    const entries = Object.entries(value).map(([name, one]) => [name, shapeOf(one, name)]);
    return Object.fromEntries(entries.sort());
  }
  return key === "type" || key === "role" ? value : typeof value;
}

/** Removes values that differ on each run, frameworks' data about themselves, and all but the first two text pieces. */
function cut(stream: readonly Event[]): Event[] {
  const ids = new Set<string>();
  const slim = stream.map((event) => slimmed(event, ids) as Event);
  let text = JSON.stringify(slim);
  for (const [n, id] of [...ids].sort((one, other) => other.length - one.length).entries())
    text = text.replaceAll(id, `id-${n}`);
  const all = JSON.parse(text) as Event[];
  const firstRaw = all.findIndex(({ type }) => type === "RAW");
  const events = all.filter(({ type }, n) => type !== "RAW" || n === firstRaw);
  return events.filter(({ type, delta }, n) => {
    return typeof delta !== "string" || [1, 2].some((back) => events[n - back]?.type !== type);
  });
}

function slimmed(value: unknown, ids: Set<string>, key = ""): unknown {
  if (/^(?:created|created_at|completed_at|timestamp|time)$/.test(key) && value !== null) return 0;
  if (/id$/i.test(key) && typeof value === "string" && value.length > 7) ids.add(value);
  if (Array.isArray(value)) return value.map((one) => slimmed(one, ids));
  if (!isRecord(value)) return value;
  const { rawEvent, ...rest } = value;
  const asked =
    isRecord(rawEvent) && "value" in rawEvent ? { rawEvent: { id: rawEvent.id, value: rawEvent.value } } : {};
  const own = value.type === "RAW" ? { ...rest, event: {} } : { ...rest, ...asked };
  return Object.fromEntries(Object.entries(own).map(([name, one]) => [name, slimmed(one, ids, name)]));
}
