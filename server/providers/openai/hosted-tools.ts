/** Tools that OpenAI runs itself: what clients see of their calls, and the sources that an answer cites. */

import { asString, isRecord } from "../../protocol/json.ts";
import type { HostedToolType, ModelEvent } from "../provider.ts";

type Json = Readonly<Record<string, unknown>>;

/** The items of hosted calls, and the names that authors of agents know the tools by. */
const TOOLS: ReadonlyMap<unknown, HostedToolType> = new Map([
  ["web_search_call", "web_search"],
  ["file_search_call", "file_search"],
  ["code_interpreter_call", "code_interpreter"],
]);

/** Unless the request includes these, the API reports that a hosted tool ran, but not its results. */
export const HOSTED_RESULTS = {
  web_search: "web_search_call.action.sources",
  file_search: "file_search_call.results",
  code_interpreter: "code_interpreter_call.outputs",
} as const satisfies Record<HostedToolType, string>;

export function isHostedCall(item: Json): boolean {
  return TOOLS.has(item.type) && asString(item.id) !== "";
}

/**
 * Follows the hosted calls of one response. A call is shown as soon as its arguments are known: for code, when it is written
 * and begins to run; for a search, often only when it is over.
 */
export class HostedToolReader {
  /** When each began, as `performance.now()`. */
  readonly #began = new Map<string, number>();
  readonly #shown = new Set<string>();

  /** For `response.output_item.added`. */
  begin(item: Json, said: ModelEvent[]): void {
    this.#began.set(asString(item.id), performance.now());
    if (isKnown(argumentsOf(item))) this.#show(item, said);
  }

  /** For `response.code_interpreter_call_code.done`: only now does the code run. */
  run({ item_id: id, code }: Json, said: ModelEvent[]): void {
    if (asString(id) === "") return;
    this.#began.set(asString(id), performance.now());
    this.#show({ id, code, type: "code_interpreter_call" }, said);
  }

  /** For `response.output_item.done`. */
  finish(item: Json, said: ModelEvent[]): void {
    const [id, name] = [asString(item.id), TOOLS.get(item.type) ?? ""];
    const failed = item.status === "failed" || item.status === "incomplete";
    const durationMs = Math.round(performance.now() - (this.#began.get(id) ?? performance.now()));
    const output = outputOf(item) || (failed ? "The tool failed." : "The tool reported no output.");
    this.#show(item, said);
    said.push({ type: "hosted_result", answer: { id, name, output, failed }, durationMs });
  }

  #show(item: Json, said: ModelEvent[]): void {
    const [id, name] = [asString(item.id), TOOLS.get(item.type) ?? ""];
    if (this.#shown.has(id)) return;
    this.#shown.add(id);
    said.push({ type: "hosted_call", call: { id, name, arguments: JSON.stringify(argumentsOf(item)) } });
  }
}

/** What the model asked the tool for. */
function argumentsOf(item: Json): Record<string, unknown> {
  switch (item.type) {
    case "web_search_call": {
      const { sources: _output, ...action } = isRecord(item.action) ? item.action : {};
      return action;
    }
    case "file_search_call":
      return { queries: item.queries };
    default:
      return { code: item.code };
  }
}

function isKnown({ type: _kindOfAction, ...fields }: Json): boolean {
  return Object.values(fields).some((value) => (Array.isArray(value) ? value.length > 0 : asString(value) !== ""));
}

/** The result as a person reads it. */
function outputOf(item: Json): string {
  switch (item.type) {
    case "web_search_call":
      return records(isRecord(item.action) ? item.action.sources : undefined)
        .map(({ url, name }) => asString(url) || asString(name))
        .join("\n");
    case "file_search_call":
      return records(item.results).map(foundText).join("\n\n");
    default:
      return records(item.outputs)
        .map(({ type, logs }) => (type === "logs" ? asString(logs) : "[an image, which is not shown]"))
        .join("\n");
  }
}

function foundText({ filename, score, text }: Json): string {
  const title = typeof score === "number" ? `${asString(filename)} (score ${score})` : asString(filename);
  return `${title}\n${asString(text)}`.trim();
}

function records(value: unknown): Json[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

/**
 * The sources that a message cites but does not name, as Markdown to put after it; "" if there are none. OpenAI's models mostly
 * link what they cite in the text itself, which has been streamed by then.
 */
export function missingSources(said: string, content: unknown): string {
  const annotations = records(content).flatMap((part) => records(part.annotations));
  const sources = new Set(annotations.map((annotation) => sourceLine(said, annotation)));
  sources.delete("");
  return sources.size === 0 ? "" : `\n\nSources:\n\n${[...sources].join("\n")}`;
}

function sourceLine(said: string, annotation: Json): string {
  switch (annotation.type) {
    case "url_citation": {
      const url = asString(annotation.url);
      if (said.includes(url) || !/^https?:/.test(url) || !URL.canParse(url)) return "";
      return `- [${escaped(asString(annotation.title) || url)}](${inLink(url)})`;
    }
    case "file_citation": {
      const name = asString(annotation.filename);
      return said.includes(name) ? "" : `- ${escaped(name)}`;
    }
    default:
      return "";
  }
}

function escaped(title: string): string {
  return title.replace(/\s+/g, " ").replace(/[\\`*_[\]<>&~|]/g, "\\$&");
}

/** Parentheses and spaces would end a Markdown link. */
function inLink(url: string): string {
  return new URL(url).href.replace(/[()]/g, (char) => (char === "(" ? "%28" : "%29"));
}
