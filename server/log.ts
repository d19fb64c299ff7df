/** Lines for the operator, on standard error: standard output belongs to the start-up text. */

import { ToolFailure } from "./agent/tool-error.ts";
import { describeFailure } from "./describe-failure.ts";
import { type RequestEntry, type RunEntry, shortId } from "./observe/entries.ts";
import type { RunSink } from "./observe/run-record.ts";
import { ApiError } from "./protocol/api-error.ts";

export interface Log extends RunSink {
  /** One line per answered request. */
  request(entry: RequestEntry): void;
  /** A sentence about the server itself. */
  notice(text: string): void;
  /** A sentence about what its operator should look at. */
  warning(text: string): void;
  /** A failure with its cause: a bug, or a model provider or a tool that failed. */
  failure(error: unknown, of?: Pick<RunEntry, "requestId" | "runId">): void;
}

/** From the loudest; each shows itself and those before it. */
export const LOG_LEVELS = ["error", "warn", "info", "debug"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** How lines are written: for people, for programs (one JSON object each), or not at all. */
export const LOG_FORMATS = ["pretty", "json", "off"] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];

export interface LogOptions {
  format: LogFormat;
  level: LogLevel;
  /** The number of this process, where several write into one stream. */
  worker?: number | undefined;
}

type Fields = Readonly<Record<string, string | number | undefined>>;

/**
 * Writes lines without headers, bodies or raw paths. What a provider said of a failure, which may quote a
 * message, is written at the level "debug" only; should anything hold one of `secrets`, that is struck out.
 * `output` is told which lines are of the many that traffic makes, and can wait to be written together.
 */
export function createLog(
  output: (line: string, canWait: boolean) => void,
  secrets: readonly string[],
  { format, level, worker }: LogOptions = { format: "pretty", level: "info" },
): Log {
  const strike = (text: string) => secrets.reduce((rest, secret) => rest.replaceAll(secret, "[key]"), text);
  const shown = LOG_LEVELS.slice(0, LOG_LEVELS.indexOf(level) + 1);
  const who = worker === undefined ? "" : `[${worker}] `;
  const write = (at: LogLevel, msg: string, fields: Fields, text: () => string) => {
    if (format === "off" || !shown.includes(at)) return;
    const line =
      format === "json"
        ? jsonLine(at, msg, {
            worker,
            ...strikeFields(fields, secrets.length > 0 ? strike : undefined),
          })
        : prettyLine(`${who}${strike(text())}`);
    output(line, OF_TRAFFIC.has(msg));
  };
  return {
    request({ requestId, method, route, status, ms, bytes }) {
      write(
        status >= 500 ? "warn" : "info",
        "request",
        { request_id: requestId, method, route, status, ms, bytes },
        () => `${method} ${route} ${status} ${ms}ms ${bytes}B ${requestId}`,
      );
    },
    run(entry) {
      const fields = fieldsOf(entry);
      write(entry.failed ? "warn" : "info", "run", fields, () => {
        const { model, end, ms, ...rest } = fields;
        const more = Object.entries(rest).filter(([, value]) => value !== undefined);
        return `run ${end} ${model} ${ms}ms ${more.map(([name, value]) => `${name}=${value}`).join(" ")}`;
      });
    },
    step({ requestId, runId, kind, name, outcome, ms }) {
      write(
        "debug",
        kind,
        { request_id: requestId, run_id: shortId(runId), name, outcome, ms },
        () => `${kind} ${name} ${outcome} ${ms}ms ${shortId(runId)}`,
      );
    },
    notice: (text) => write("info", "notice", { text }, () => text),
    warning: (text) => write("warn", "notice", { text }, () => `warning: ${text}`),
    failure(error, of) {
      const isBug = !(error instanceof ToolFailure || error instanceof ApiError);
      const isInternal = error instanceof ApiError && error.code === "internal";
      const at = isBug || isInternal ? "error" : "warn";
      // Cut after the secrets are struck out: half a secret would not be found.
      const text = cut(strike(describeFailure(error, level === "debug")));
      const ids = { request_id: of?.requestId, run_id: of && shortId(of.runId) };
      write(at, "failure", { ...ids, error: text }, () => (of ? `${text} ${shortId(of.runId)}` : text));
    },
  };
}

/** Most of one failure that is logged, in UTF-16 units: a tool can throw megabytes. */
const MAX_FAILURE_CHARS = 16_000;

function cut(text: string): string {
  if (text.length <= MAX_FAILURE_CHARS) return text;
  const kept = text.slice(0, MAX_FAILURE_CHARS).toWellFormed();
  return `${kept} [cut: ${text.length - MAX_FAILURE_CHARS} more characters]`;
}

/** The messages of lines that every request and every run makes. */
const OF_TRAFFIC = new Set(["request", "run", "model", "tool"]);

function strikeFields(fields: Fields, strike: ((text: string) => string) | undefined): Fields {
  if (strike === undefined) return fields;
  const struck: Record<string, string | number | undefined> = {};
  for (const [name, value] of Object.entries(fields)) {
    struck[name] = typeof value === "string" ? strike(value) : value;
  }
  return struck;
}

function fieldsOf(entry: RunEntry) {
  return {
    request_id: entry.requestId,
    run_id: shortId(entry.runId),
    model: entry.model,
    transport: entry.transport,
    key: entry.key,
    end: entry.end,
    ms: entry.ms,
    queue_ms: entry.queueMs,
    first_token_ms: entry.firstTokenMs,
    input_tokens: entry.inputTokens,
    output_tokens: entry.outputTokens,
    turns: entry.turns,
    tools: entry.tools,
    provider_request_id: entry.providerRequestId,
  };
}

function jsonLine(level: LogLevel, msg: string, fields: Fields): string {
  // What is undefined JSON leaves out.
  const line = JSON.stringify({ time: timestamp(), level, msg, ...fields });
  // What JSON lets stand and a terminal or a reader of lines may obey.
  return line.replace(
    /[\u007f-\u009f\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

function prettyLine(text: string): string {
  return `${timestamp()} ${printable(text)}`;
}

/** The last one: a busy server writes many lines in a millisecond. */
let stamp = { at: 0, text: "" };

function timestamp(): string {
  const at = Date.now();
  if (at !== stamp.at) stamp = { at, text: new Date(at).toISOString() };
  return stamp.text;
}

/** What came from outside must not write colours of its own; a line of its own is set off, as a stack is. */
function printable(text: string): string {
  return (
    text
      // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is removed.
      .replace(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029]/g, "?")
      .replace(/\n(?! )/g, "\n  ")
  );
}
