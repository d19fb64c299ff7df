/** The table of shapes, and how the shape of an item is found. */

import { isRecord } from "../protocol/json.ts";
import { AG_UI } from "./ag-ui.ts";
import { AI_SDK } from "./ai-sdk.ts";
import type { Answer } from "./answer.ts";
import { LANGCHAIN_EVENTS } from "./langchain-events.ts";
import { LANGGRAPH } from "./langgraph.ts";
import { MASTRA } from "./mastra.ts";
import { OPENAI_AGENTS } from "./openai-agents.ts";
import { meantEvent, OWN_EVENTS } from "./own-events.ts";
import type { Shape, ShapeReader } from "./shape.ts";

/** Each item fits at most one shape, except for data parts, which the AI SDK and Mastra both stream. */
export const SHAPES: readonly Shape[] = [OWN_EVENTS, AI_SDK, MASTRA, OPENAI_AGENTS, LANGGRAPH, LANGCHAIN_EVENTS, AG_UI];

/** Reads one answer, in which several shapes may be mixed. */
export class ItemReader {
  readonly #answer: Answer;
  readonly #readers = new Map<Shape, ShapeReader>();
  #last: Shape = OWN_EVENTS;
  /** Whether any item was known. */
  hasKnown = false;
  /** A description of the first unknown item. */
  unknown: string | undefined;
  /** The first framework that was recognised. */
  framework: string | undefined;

  constructor(answer: Answer) {
    this.#answer = answer;
  }

  /** @throws ApiError for a failure that the item reports, or what the agent's tool or model threw */
  read(item: unknown): void {
    const meant = meantEvent(item);
    const fits = (shape: Shape) => meant === undefined && shape.fits(item);
    const shape = fits(this.#last) ? this.#last : [...this.#readers.keys(), ...SHAPES].find(fits);
    if (shape === undefined || !this.#readerOf(shape).read(item, this.#answer)) {
      this.unknown ??= describe(item);
      return;
    }
    this.hasKnown = true;
    if (shape !== OWN_EVENTS) this.framework ??= shape.name;
  }

  end(sources: readonly Record<string, unknown>[]): void {
    for (const reader of this.#readers.values()) reader.end?.(this.#answer, sources);
  }

  #readerOf(shape: Shape): ShapeReader {
    this.#last = shape;
    const reader = this.#readers.get(shape) ?? shape.reader(this.#answer);
    this.#readers.set(shape, reader);
    return reader;
  }
}

const MAX_FIELDS = 8;

/** Names and types only: the values may be a user's words. */
function describe(item: unknown): string {
  if (Array.isArray(item)) return `an array of ${item.length}: ${item.slice(0, MAX_FIELDS).map(nameOf).join(", ")}`;
  if (!isRecord(item)) return `a ${typeof item}`;
  const kind = [item.type, item.event].find((name) => typeof name === "string" && /^[\w.-]{1,64}$/.test(name));
  const fields = Object.keys(item).slice(0, MAX_FIELDS).join(", ");
  const { name } = Object.getPrototypeOf(item)?.constructor ?? {};
  const made =
    typeof name === "string" && /^[A-Z]\w{0,63}$/.test(name) && name !== "Object" ? `of the class ${name} ` : "";
  const meant = meantEvent(item);
  const type =
    kind === undefined ? "" : `of the type ${kind} ${meant === undefined ? "" : `(did you mean ${meant}?) `}`;
  return `an object ${made}${type}with the fields ${fields || "(none)"}`;
}

function nameOf(item: unknown): string {
  return Array.isArray(item) ? "array" : item === null ? "null" : typeof item;
}
