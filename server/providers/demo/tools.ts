/** Which tools the demo model calls: it matches words, where a model would understand. */

import { isRecord } from "../../protocol/json.ts";
import type { ToolCall, ToolSpec } from "../provider.ts";

/** Words of tool names that say nothing about the subject. */
const FILLERS = new Set(["get", "set", "list", "find", "the", "of", "a", "to", "my", "between"]);

/** A tool that does one of these needs that word: whoever asks for the status of an order must not be asked to cancel it. */
const DEEDS = new Set([
  "add",
  "book",
  "buy",
  "cancel",
  "change",
  "create",
  "delete",
  "pay",
  "refund",
  "remove",
  "send",
]);

/**
 * Calls every tool of which the message says a word ("weather" for `get_weather`), or all for the word
 * "tools"; of one that does something ("cancel_order"), its verb. Names, numbers and quotations of the message fill text arguments; a tool that takes one gets a call for each.
 */
export function chooseCalls(text: string, tools: readonly ToolSpec[], turn: number): ToolCall[] {
  const words = new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []);
  const names = properNames(text);
  const chosen = tools.filter((tool) => words.has("tools") || isMentioned(tool, words));
  return chosen
    .flatMap((tool) => argumentsFor(tool, names).map((args) => ({ name: tool.name, args })))
    .map(({ name, args }, index) => ({ id: `demo_${turn}_${index + 1}`, name, arguments: JSON.stringify(args) }));
}

function isMentioned({ name }: ToolSpec, words: ReadonlySet<string>): boolean {
  const [verb = "", ...rest] = wordsOf(name);
  if (DEEDS.has(verb)) return words.has(verb);
  return [verb, ...rest].some((word) => !FILLERS.has(word) && words.has(word));
}

/** "find" and "order" of `findOrder` or `find_order`. */
export function wordsOf(name: string): string[] {
  return name
    .replace(/([a-z])([A-Z])/g, "$1_$2")
    .toLowerCase()
    .split(/[_-]+/)
    .filter((word) => word !== "");
}

/** What is in quotation marks, words with a digit, and capitalised words but for those that begin a sentence. */
function properNames(text: string): string[] {
  const found = text.matchAll(/["“„]([^"“”]+)["“”]|[\p{L}\d-]*\d[\p{L}\d-]*|(?<![.!?]\s*|^\s*)\p{Lu}\p{Ll}+/gu);
  return [...found].map(([name, quoted]) => quoted ?? name);
}

function argumentsFor(tool: ToolSpec, names: readonly string[]): Record<string, unknown>[] {
  const { properties, required } = tool.parameters;
  const fields = Object.entries(isRecord(properties) ? properties : {})
    .filter(([name]) => Array.isArray(required) && required.includes(name))
    .map(([name, schema]) => ({ name, schema: isRecord(schema) ? schema : {} }));
  const textFields = fields.filter(({ schema }) => isFreeText(schema));
  const rounds = textFields.length === 1 && names.length > 1 ? names.map((name) => [name]) : [names];
  return rounds.map((round) => {
    const left = [...round];
    return Object.fromEntries(
      fields.map(({ name, schema }) => [name, (isFreeText(schema) ? left.shift() : undefined) ?? sample(schema)]),
    );
  });
}

function isFreeText(schema: Record<string, unknown>): boolean {
  return schema.type === "string" && schema.enum === undefined && schema.const === undefined;
}

/** A value that the schema's author offers, else the plainest of its type. */
function sample(schema: Record<string, unknown>): unknown {
  const [offered] = [schema.examples, schema.enum].flatMap((list) => (Array.isArray(list) ? list : []));
  const named = schema.const ?? schema.default ?? offered;
  if (named !== undefined) return named;
  switch (schema.type) {
    case "number":
    case "integer":
      return typeof schema.minimum === "number" ? schema.minimum : 1;
    case "boolean":
      return true;
    case "array":
      return [];
    case "object":
      return {};
    default:
      return "example";
  }
}
