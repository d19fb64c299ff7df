import type { ToolLimits } from "./agent/runner.ts";
import type { Limits } from "./limits/limits.ts";
import type { MemoryDefaults } from "./memory-defaults.ts";
import { type Environment, number, seconds } from "./read-setting.ts";
import type { MessageLimits } from "./routes/parse-chat.ts";
import type { ResumeSettings } from "./runs/run-hub.ts";

/** Read for each decision, so that they can change while the server runs. */
export const LIVE_LIMITS: readonly string[] = [
  "PARLEY_RATE_PER_KEY",
  "PARLEY_RATE_PER_ADDRESS",
  "PARLEY_WIDGET_RATE_PER_ADDRESS",
  "PARLEY_WRONG_KEYS_PER_ADDRESS",
  "PARLEY_RATE_PER_SOCKET",
  "PARLEY_MAX_RUNS",
  "PARLEY_MAX_RUNS_PER_KEY",
  "PARLEY_MAX_RUNS_PER_ADDRESS",
  "PARLEY_WIDGET_MAX_RUNS_PER_ADDRESS",
  "PARLEY_MAX_QUEUED_RUNS",
  "PARLEY_QUEUE_SECONDS",
  "PARLEY_MAX_SOCKETS",
  "PARLEY_MAX_SOCKETS_PER_ADDRESS",
  "PARLEY_MAX_MESSAGE_CHARS",
  "PARLEY_MAX_HISTORY_ITEMS",
  "PARLEY_MAX_HISTORY_BYTES",
  "PARLEY_MAX_JSON_DEPTH",
  "PARLEY_MAX_TOOL_OUTPUT_CHARS",
  "PARLEY_MAX_TOOL_CALLS",
  "PARLEY_TRUSTED_PROXIES",
  "PARLEY_FORWARDED_HEADER",
];

const WHOLE = { integer: true };
const FROM_ONE = { integer: true, min: 1 };

/** @throws SetupError */
export function readLimits(env: Environment): Limits {
  return Object.freeze({
    rates: Object.freeze({
      perKey: number(env, "PARLEY_RATE_PER_KEY", 600, WHOLE),
      perAddress: number(env, "PARLEY_RATE_PER_ADDRESS", 60, WHOLE),
      widgetPerAddress: number(env, "PARLEY_WIDGET_RATE_PER_ADDRESS", 20, WHOLE),
      wrongKeysPerAddress: number(env, "PARLEY_WRONG_KEYS_PER_ADDRESS", 20, WHOLE),
      framesPerSocket: number(env, "PARLEY_RATE_PER_SOCKET", 120, WHOLE),
    }),
    runs: Object.freeze({
      process: number(env, "PARLEY_MAX_RUNS", 256, WHOLE),
      perKey: number(env, "PARLEY_MAX_RUNS_PER_KEY", 128, WHOLE),
      perAddress: number(env, "PARLEY_MAX_RUNS_PER_ADDRESS", 32, WHOLE),
      widgetPerAddress: number(env, "PARLEY_WIDGET_MAX_RUNS_PER_ADDRESS", 8, WHOLE),
      queued: number(env, "PARLEY_MAX_QUEUED_RUNS", 64, WHOLE),
      queueMs: seconds(env, "PARLEY_QUEUE_SECONDS", 5, 0),
    }),
    sockets: Object.freeze({
      process: number(env, "PARLEY_MAX_SOCKETS", 5000, WHOLE),
      perAddress: number(env, "PARLEY_MAX_SOCKETS_PER_ADDRESS", 100, WHOLE),
    }),
  });
}

/** @throws SetupError */
export function readMessageLimits(env: Environment): MessageLimits {
  return Object.freeze({
    maxMessageChars: number(env, "PARLEY_MAX_MESSAGE_CHARS", 1_000_000, FROM_ONE),
    maxHistoryItems: number(env, "PARLEY_MAX_HISTORY_ITEMS", 2000, FROM_ONE),
    maxHistoryBytes: number(env, "PARLEY_MAX_HISTORY_BYTES", 16 * 1024 * 1024, FROM_ONE),
    // What reads a message walks it recursively, so the depth has a bound of its own.
    maxDepth: number(env, "PARLEY_MAX_JSON_DEPTH", 64, { integer: true, min: 8, max: 512 }),
  });
}

/** @throws SetupError */
export function readToolLimits(env: Environment): ToolLimits {
  return Object.freeze({
    maxOutputChars: number(env, "PARLEY_MAX_TOOL_OUTPUT_CHARS", 100_000, FROM_ONE),
    maxCallsPerTurn: number(env, "PARLEY_MAX_TOOL_CALLS", 16, FROM_ONE),
  });
}

/** @throws SetupError */
export function readResume(env: Environment, { resumeBytesTotal }: MemoryDefaults): ResumeSettings {
  return Object.freeze({
    graceMs: seconds(env, "PARLEY_RESUME_SECONDS", 15, 0),
    maxBytes: number(env, "PARLEY_RESUME_BYTES", 4 * 1024 * 1024, FROM_ONE),
    maxTotalBytes: number(env, "PARLEY_RESUME_TOTAL_BYTES", resumeBytesTotal, FROM_ONE),
  });
}
