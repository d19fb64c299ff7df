/**
 * The log, on standard error: JSON for programs, short lines for people on a terminal. JSON records contain no text of a
 * conversation; lines on a terminal do, if only the operator can chat. No record contains a key, header, query or raw path.
 */

import { isatty } from "node:tty";
import { pino } from "pino";
import { findSecrets, type Span, strike } from "../config/secrets.ts";
import { isOnlyForOperator, type Settings } from "../config/settings.ts";
import { AgentNotice, ToolFailure } from "../errors.ts";
import { ApiError } from "../protocol/errors.ts";
import { describeFailure } from "./describe-failure.ts";
import type { Decision, RunEntry, RunStart, StepEntry } from "./run-observer.ts";

export type Log = ReturnType<typeof createLog>;

/** One answered request, or one WebSocket from its upgrade to its close. */
export interface RequestEntry {
  readonly requestId: string;
  /** `WS` for a WebSocket. */
  readonly method: string;
  /** As in the table of routes: `/api/chat/runs/{id}`; `unmatched` where nothing is served. Never the raw path. */
  readonly route: string;
  readonly status: number;
  /** Code of the error with which the request failed or was refused, and its detail for the operator. */
  readonly error?: string | undefined;
  /** From the request's head to the end of its answer. */
  readonly ms: number;
  /** Bytes that were sent, including headers and frames. */
  readonly bytes: number;
}

type Fields = Record<string, string | number | boolean | undefined>;

const STANDARD_ERROR = 2;

/** Maximum tool calls of one run that are shown on a terminal. */
const MAX_PRETTY_TOOLS = 8;

/** `sink` gets each record with its line end, in place of standard error. */
export function createLog(settings: Settings, sink = standardError()) {
  const { log: format, logLevel } = settings;
  const isPretty = (format ?? (isatty(STANDARD_ERROR) ? "pretty" : "json")) === "pretty";
  const secrets = new Set<string>();
  const records = pino(
    {
      level: format === "off" ? "silent" : logLevel,
      base: null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (level) => ({ level }), log: (fields) => cleaned(fields as Fields, secrets) },
    },
    {
      write(record) {
        const text = isPretty ? prettyRecord(JSON.parse(record)) : escapeControls(record);
        if (text !== "") sink(text);
      },
    },
  );

  return {
    request({ requestId, ...facts }: RequestEntry): void {
      records[facts.status >= 500 ? "warn" : "info"]({ request_id: requestId, ...facts }, "request");
    },
    run(entry: RunEntry): void {
      const fields = { ...runFields(entry), ...(isPretty ? prettyFields(entry, isOnlyForOperator(settings)) : {}) };
      records[entry.failed ? "warn" : "info"](fields, "run");
    },
    step({ start, kind, name, outcome, ms }: StepEntry): void {
      if (!records.isLevelEnabled("debug")) return;
      records.debug({ ...idsOf(start), name, outcome, ms }, kind);
    },
    approval(tool: string, decision: Decision, start: RunStart): void {
      records.info({ ...idsOf(start), tool, decision }, "approval");
    },
    /** A sentence about the server itself. */
    notice: (text: string): void => records.info({ text }, "notice"),
    /** A sentence that the operator should act on. */
    warning: (text: string): void => records.warn({ text }, "notice"),
    /** A failure with its causes: a bug, or a failed model provider. `hidden` texts are struck out of this record. */
    failure(error: unknown, run?: FailedRun, hidden: readonly string[] = []): void {
      const isOfProject = error instanceof ToolFailure || error instanceof AgentNotice;
      const isExpected = isOfProject || (error instanceof ApiError && error.code !== "internal");
      const fields = {
        ...(run && idsOf(run)),
        error: describeFailure(error, logLevel === "debug", (text) => strike(text, [...hidden, ...secrets])),
      };
      records[isExpected ? "warn" : "error"](fields, "failure");
    },
    strike: (text: string): string => strike(text, secrets),
    findSecrets: (text: string): Span[] => findSecrets(text, secrets),
    /** Strikes these values out of every later record. */
    hide(more: Iterable<string>): void {
      for (const secret of more) secrets.add(secret);
    },
  };
}

/** Maximum size of the records that wait while the reader of standard error does not read. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;

const ignore = () => {};

/**
 * Node writes at once what the reader can accept, so that a record is not lost however the process ends. The rest waits, up to
 * a limit, without blocking answers as pino's own destination would. If the reader has gone, the records are lost.
 */
function standardError(): (record: string) => void {
  const { stderr } = process;
  // Once for the process, which may create many servers.
  stderr.off("error", ignore).on("error", ignore);
  return (record) => {
    if (stderr.writableLength < MAX_WAITING_BYTES) stderr.write(record);
  };
}

/** Where no key is needed, the whole id gives access to the run; its beginning is enough to find its records. */
export function shortId(runId: string): string {
  return runId.slice(0, 8);
}

/** What failed: a run, or a request that has none yet. */
export type FailedRun = Pick<RunStart, "requestId"> & Partial<Pick<RunStart, "runId">>;

function idsOf({ requestId, runId }: FailedRun): Fields {
  return { request_id: requestId, run_id: runId && shortId(runId) };
}

/** Unknown fields are left out. */
function runFields(entry: RunEntry): Fields {
  const { start } = entry;
  return {
    ...idsOf(start),
    conversation: start.conversation,
    model: entry.model,
    transport: start.transport,
    key: start.key,
    end: entry.end,
    ms: entry.ms,
    queue_ms: entry.queueMs,
    first_token_ms: entry.firstTokenMs,
    ...entry.usage,
    cost: entry.cost,
    turns: entry.turns,
    tools: entry.toolCalls,
    provider_request_id: entry.providerRequestId,
  };
}

function prettyFields({ message, tools }: RunEntry, showsMessages: boolean): Fields {
  const shown = tools.slice(0, MAX_PRETTY_TOOLS);
  const steps = shown.map(({ name, outcome, ms }) => `${outcome === "completed" ? "✓" : "✗"} ${name} ${ms} ms`);
  if (tools.length > shown.length) steps.push(`and ${tools.length - shown.length} more`);
  // Decisions have no message.
  return { question: showsMessages && message !== "" ? message : undefined, steps: steps.join("  ") };
}

/** In UTF-16 units; enough for several causes of a failure. */
const MAX_FIELD_CHARS = 16_000;

/** Strikes the secrets out before it cuts long texts, because half a secret would not be found. */
function cleaned(fields: Fields, secrets: ReadonlySet<string>): Fields {
  const struck = Object.entries(fields).map(([name, value]) => {
    if (typeof value !== "string") return [name, value];
    const text = strike(value, secrets);
    return [name, text.length > MAX_FIELD_CHARS ? text.slice(0, MAX_FIELD_CHARS).toWellFormed() : text];
  });
  return Object.fromEntries(struck);
}

/** JSON allows characters in strings that some terminals and line readers interpret. */
function escapeControls(record: string): string {
  const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return record.replace(/[\u007f-\u009f\u2028\u2029]/g, escaped);
}

const MAX_QUESTION_CHARS = 60;

/** A short line for a person on a terminal: one for a run, one more if it failed; "" for records that are left out. */
function prettyRecord(record: Fields): string {
  const text = prettyText(record);
  if (text === "") return "";
  const time = new Date(String(record.time)).toTimeString().slice(0, 8);
  return `${time} ${printable(text)}\n`;
}

function prettyText(record: Fields): string {
  switch (record.msg) {
    case "run":
      return runText(record);
    case "request":
      // Requests that succeeded are shown as runs, or are of no interest.
      if (Number(record.status) < 400) return "";
      return [`${record.method} ${record.route} ${record.status}`, record.error, `${record.ms} ms`, record.request_id]
        .filter(Boolean)
        .join("  ");
    case "model":
    case "tool":
      return `${record.msg} ${record.name} ${record.outcome}  ${record.ms} ms  ${record.run_id}`;
    case "approval":
      return `${record.decision} ${record.tool}  ${record.run_id}`;
    case "failure":
      return [`failure: ${record.error}`, record.run_id].filter(Boolean).join("  ");
    default:
      return record.level === "warn" ? `warning: ${record.text}` : String(record.text);
  }
}

function runText(record: Fields): string {
  const { question, steps, model, end, input_tokens: input, output_tokens: output, ms } = record;
  const isAnswered = end === "stop";
  return [
    question === undefined ? `run ${record.run_id}` : `"${firstWords(String(question))}"`,
    steps,
    model,
    input === undefined ? "" : `${Number(input) + Number(output)} tokens`,
    `${(Number(ms) / 1000).toFixed(1)} s`,
    isAnswered ? "" : `${record.level === "warn" ? "✗ " : ""}${end}`,
  ]
    .filter(Boolean)
    .join("  ");
}

export function firstWords(question: string): string {
  const words = question.replace(/\s+/g, " ").trim();
  if (words.length <= MAX_QUESTION_CHARS) return words;
  const cut = words.slice(0, MAX_QUESTION_CHARS).toWellFormed();
  return `${cut.slice(0, Math.max(cut.lastIndexOf(" "), 1))}…`;
}

/** Replaces control characters in external text, which could set colours, and indents its further lines. */
export function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is removed.
  const controls = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029]/g;
  return text.replace(controls, "?").replace(/\n(?! )/g, "\n  ");
}
