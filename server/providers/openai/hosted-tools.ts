/** Tools that OpenAI runs itself: what clients see of their calls, and the sources of an answer. */

import { asString, isRecord, type Json, records, tryParse } from "../../protocol/json.ts";
import { messageSources, sourceEvents } from "../citations.ts";
import { textContent } from "../history.ts";
import type { HostedToolType, ModelEvent } from "../provider.ts";

interface ShownTool {
  /** What the model asked the tool for. */
  argumentsOf(item: Json): Json;
  /** The result as a person reads it. */
  outputOf(item: Json): string;
}

interface HostedTool extends ShownTool {
  /** Unless the request includes this, the API reports that the tool ran, but not its results. */
  include: string;
}

/** The tools by the names that agents use for them. The item of a call has the name and `_call` as its type. */
export const HOSTED_TOOLS: Readonly<Record<HostedToolType, HostedTool>> = {
  web_search: {
    include: "web_search_call.action.sources",
    argumentsOf({ action }) {
      const { sources: _output, ...asked } = isRecord(action) ? action : {};
      return asked;
    },
    outputOf: ({ action }) =>
      records(isRecord(action) ? action.sources : [])
        .map(({ url, name }) => asString(url) || asString(name))
        .join("\n"),
  },
  file_search: {
    include: "file_search_call.results",
    argumentsOf: ({ queries }) => ({ queries }),
    outputOf: ({ results }) => records(results).map(foundText).join("\n\n"),
  },
  code_interpreter: {
    include: "code_interpreter_call.outputs",
    argumentsOf: ({ code }) => ({ code }),
    outputOf: ({ outputs }) =>
      records(outputs)
        .map(({ type, logs }) => (type === "logs" ? asString(logs) : "[an image, which is not shown]"))
        .join("\n"),
  },
};

/** A tool of an MCP server that OpenAI calls; the item has the tool's name. The text of an error is not for clients. */
const MCP: ShownTool = {
  argumentsOf({ arguments: written }) {
    const args = tryParse(asString(written));
    return isRecord(args) ? args : {};
  },
  outputOf: ({ output }) => asString(output),
};

const SHOWN: Readonly<Record<string, ShownTool>> = { ...HOSTED_TOOLS, mcp: MCP };

/** The tool that an item is a call of, and the name that clients see. */
function toolOf({ type, id, name: own }: Json): { name: string; tool: ShownTool } | undefined {
  const name = /^(.+)_call$/.exec(asString(type))?.[1] ?? "";
  const tool = Object.hasOwn(SHOWN, name) ? SHOWN[name] : undefined;
  return asString(id) === "" || tool === undefined ? undefined : { name: asString(own) || name, tool };
}

/**
 * Follows the hosted calls of one response. A call is shown as soon as its arguments are known: for code, when it is
 * written and begins to run; for a search, often only when it has ended.
 */
export class HostedToolReader {
  /** When each call began, as `performance.now()`. */
  readonly #began = new Map<string, number>();
  readonly #shown = new Set<string>();

  /** For `response.output_item.added`. */
  begin(item: Json, said: ModelEvent[]): void {
    const known = toolOf(item);
    if (known === undefined) return;
    this.#began.set(asString(item.id), performance.now());
    if (isKnown(known.tool.argumentsOf(item))) this.#show(item, known, said);
  }

  /** For `response.code_interpreter_call_code.done`: only now does the code run. */
  run({ item_id: id, code }: Json, said: ModelEvent[]): void {
    this.begin({ id, code, type: "code_interpreter_call" }, said);
  }

  /** For a message's content, or its text so far with one annotation. `text`: all text of the answer so far. */
  cite(content: unknown, text: string, said: ModelEvent[]): void {
    said.push(...sourceEvents(messageSources(content, text)));
  }

  /** For `response.output_item.done`. Returns whether the item is a hosted call. */
  finish(item: Json, said: ModelEvent[]): boolean {
    const known = toolOf(item);
    if (known === undefined) return false;
    const { name, tool } = known;
    const id = asString(item.id);
    const failed = item.status === "failed" || item.status === "incomplete" || Boolean(item.error);
    const durationMs = Math.round(performance.now() - (this.#began.get(id) ?? performance.now()));
    const output = tool.outputOf(item) || (failed ? "The tool failed." : "The tool reported no output.");
    this.#show(item, known, said);
    said.push({ type: "hosted_result", answer: { id, name, content: textContent(output), failed }, durationMs });
    return true;
  }

  #show(item: Json, { name, tool }: { name: string; tool: ShownTool }, said: ModelEvent[]): void {
    const id = asString(item.id);
    if (this.#shown.has(id)) return;
    this.#shown.add(id);
    const args = JSON.stringify(tool.argumentsOf(item));
    said.push({ type: "hosted_call", call: { id, name, arguments: args } });
  }
}

function isKnown({ type: _kindOfAction, ...fields }: Json): boolean {
  return Object.values(fields).some((value) => (Array.isArray(value) ? value.length > 0 : asString(value) !== ""));
}

function foundText({ filename, score, text }: Json): string {
  const title = typeof score === "number" ? `${asString(filename)} (score ${score})` : asString(filename);
  return `${title}\n${asString(text)}`.trim();
}
