/** Runs as a story on the developer's terminal: the question, each tool with its arguments, and how the answer ended. */

import { ToolFailure } from "../errors.ts";
import { firstWords, type Log, printable } from "../observe/log.ts";
import type { Decision, RunEntry, RunSink, RunStart, StepEntry } from "../observe/run-observer.ts";
import { framesIn } from "../project/load-project.ts";
import type { TracedRequest } from "./trace.ts";

interface StoryOptions {
  readonly folder: string;
  readonly log: Log;
  readonly hasColors: boolean;
  write(text: string): void;
}

const MAX_ARGUMENTS_CHARS = 100;
const MAX_PROBLEM_CHARS = 300;
const MAX_CAUSES = 8;
const INDENT = " ".repeat("00:00:00 ".length);

type Paint = (text: string) => string;

/** Replaces the log's records of runs; failures outside of the agent's tools are still logged. */
export class Story implements RunSink {
  readonly #options: StoryOptions;
  readonly #red: Paint;
  readonly #green: Paint;
  readonly #dim: Paint;
  readonly #bold: Paint;
  /** The run of the last line: lines of another run begin with its question. */
  #runId = "";

  constructor(options: StoryOptions) {
    this.#options = options;
    const paint =
      (code: number, end: number): Paint =>
      (text) =>
        options.hasColors ? `\u001b[${code}m${text}\u001b[${end}m` : text;
    this.#red = paint(31, 39);
    this.#green = paint(32, 39);
    this.#dim = paint(2, 22);
    this.#bold = paint(1, 22);
  }

  begin(start: RunStart): undefined {
    this.#runId = "";
    this.#chapter(start);
  }

  step({ start, kind, name, outcome, ms, ...tool }: StepEntry): void {
    if (kind !== "tool") return;
    this.#chapter(start);
    const isDone = outcome === "completed";
    const mark = isDone ? this.#green("✓") : this.#red("✗");
    const args = this.#dim(this.#text(tool.arguments ?? "", MAX_ARGUMENTS_CHARS));
    this.#line(`${mark} ${this.#text(name)} ${args}  ${ms} ms`);
    if (!isDone) this.#line(`  ${this.#red(this.#text(this.#problemOf(tool), MAX_PROBLEM_CHARS))}`);
  }

  /** A request to a model that was written to the trace. */
  request({ start, model, end, status, ms, place }: TracedRequest): void {
    this.#chapter(start);
    const how = end === "complete" ? "" : end === "failed" ? this.#red(`✗ ${status ?? "failed"}`) : end;
    const facts = [`→ ${this.#text(model)}`, `${ms} ms`, how, this.#text(place)];
    this.#line(this.#dim(facts.filter(Boolean).join("  ")));
  }

  approval(tool: string, decision: Decision, start: RunStart): void {
    this.#chapter(start);
    this.#line(`${decision} ${this.#text(tool)}`);
  }

  failure(error: unknown, start: RunStart): void {
    // The step of a tool shows what it threw.
    if (error instanceof ToolFailure) return;
    this.#options.log.failure(error, start);
  }

  run({ start, model, end, failed, last, usage, cost, ms }: RunEntry): void {
    this.#chapter(start);
    const waiting = last?.type === "done" ? (last.approvals ?? []) : [];
    for (const { tool, arguments: args = "" } of waiting) {
      this.#line(`? ${this.#text(tool)} ${this.#dim(this.#text(args, MAX_ARGUMENTS_CHARS))}  waits for a decision`);
    }
    const how = failed ? this.#red(`✗ ${end}`) : end === "stop" ? "" : end;
    const about = usage?.estimated ? "about " : "";
    const tokens = usage === undefined ? "" : `${about}${usage.input_tokens + usage.output_tokens} tokens`;
    const dollars = cost === undefined ? "" : `${about}$${Number(cost.toPrecision(3))}`;
    const facts = [this.#text(model), tokens, dollars, `${(ms / 1000).toFixed(1)} s`, how];
    this.#line(this.#dim(facts.filter(Boolean).join("  ")));
    this.#runId = "";
  }

  #problemOf({ thrown, output = "" }: Pick<StepEntry, "thrown" | "output">): string {
    if (thrown === undefined) return output;
    const message = thrown instanceof Error ? thrown.message || thrown.name : String(thrown);
    const frame = this.#placeOf(thrown);
    return frame === undefined ? message : `${message} (${frame})`;
  }

  /** Where the project's own code threw the error, or its cause. */
  #placeOf(error: unknown): string | undefined {
    for (let part = error, depth = 0; part instanceof Error && depth < MAX_CAUSES; part = part.cause, depth++) {
      const [frame] = framesIn(this.#options.folder, part);
      if (frame !== undefined) return frame;
    }
    return undefined;
  }

  #chapter({ runId, message, attachments }: RunStart): void {
    if (this.#runId === runId) return;
    this.#runId = runId;
    const time = new Date().toTimeString().slice(0, 8);
    const files = attachments.map(({ name }) => name).join(", ");
    // Decisions and `continue` come without a message.
    const title = message === "" ? files || "goes on" : `"${firstWords(this.#text(message))}"`;
    this.#options.write(`${time} ${this.#bold(this.#text(title))}\n`);
  }

  #line(text: string): void {
    this.#options.write(`${INDENT}${text}\n`);
  }

  /** In one line, without secrets and without colours of its own. */
  #text(text: string, maxChars = Infinity): string {
    const line = printable(this.#options.log.strike(text).replace(/\s+/g, " ").trim());
    return line.length > maxChars ? `${line.slice(0, maxChars).toWellFormed()}…` : line;
  }
}
