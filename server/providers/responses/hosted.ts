import { isRecord } from "../../protocol/is-record.ts";
import type { HostedToolType, SpokenEvent } from "../provider.ts";
import { text } from "../text.ts";

type Json = Readonly<Record<string, unknown>>;

/** The items of tools that OpenAI runs itself, and the names that their authors know them by. */
const TOOLS: ReadonlyMap<unknown, HostedToolType> = new Map([
  ["web_search_call", "web_search"],
  ["file_search_call", "file_search"],
  ["code_interpreter_call", "code_interpreter"],
]);

/** Whether an output item tells of a tool that OpenAI ran. */
export function isHostedCall(item: Json): boolean {
  return TOOLS.has(item.type) && text(item.id) !== "";
}

/**
 * Follows the hosted calls of one response. A call is shown as soon as it is known what it does: for code
 * that is when it is written and begins to run, for a search often only when it is over.
 */
export class HostedCalls {
  /** When each began, as `performance.now()`. */
  readonly #began = new Map<string, number>();
  readonly #shown = new Set<string>();

  /** For `response.output_item.added`. */
  begin(item: Json): SpokenEvent[] {
    this.#began.set(text(item.id), performance.now());
    return isKnown(argumentsOf(item)) ? this.#show(item) : [];
  }

  /** For `response.code_interpreter_call_code.done`: only now does the code run. */
  run({ item_id: id, code }: Json): SpokenEvent[] {
    if (text(id) === "") return [];
    this.#began.set(text(id), performance.now());
    return this.#show({ id, code, type: "code_interpreter_call" });
  }

  /** For `response.output_item.done`. */
  finish(item: Json): SpokenEvent[] {
    const [id, name] = [text(item.id), TOOLS.get(item.type) ?? ""];
    const failed = item.status === "failed" || item.status === "incomplete";
    const durationMs = Math.round(performance.now() - (this.#began.get(id) ?? performance.now()));
    const output = outputOf(item) || (failed ? "OpenAI says that this failed." : NO_OUTPUT);
    return [...this.#show(item), { type: "hosted_result", answer: { id, name, output, failed }, durationMs }];
  }

  #show(item: Json): SpokenEvent[] {
    const [id, name] = [text(item.id), TOOLS.get(item.type) ?? ""];
    if (this.#shown.has(id)) return [];
    this.#shown.add(id);
    const written = JSON.stringify(argumentsOf(item));
    return [{ type: "hosted_call", call: { id, name, arguments: written } }];
  }
}

const NO_OUTPUT = "OpenAI reports no output.";

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
  return Object.values(fields).some((value) => (Array.isArray(value) ? value.length > 0 : text(value) !== ""));
}

/** What came of it, as a person reads it. */
function outputOf(item: Json): string {
  switch (item.type) {
    case "web_search_call":
      return records(isRecord(item.action) ? item.action.sources : undefined)
        .map(({ url, name }) => text(url) || text(name))
        .join("\n");
    case "file_search_call":
      return records(item.results).map(foundText).join("\n\n");
    default:
      return records(item.outputs)
        .map(({ type, logs }) => (type === "logs" ? text(logs) : "[an image, which is not shown]"))
        .join("\n");
  }
}

function foundText({ filename, score, text: found }: Json): string {
  const title = typeof score === "number" ? `${text(filename)} (score ${score})` : text(filename);
  return `${title}\n${text(found)}`.trim();
}

function records(value: unknown): Json[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}
