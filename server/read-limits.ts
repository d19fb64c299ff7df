import type { ToolLimits } from "./agent/runner.ts";
import { type Environment, number } from "./read-setting.ts";
import type { MessageLimits } from "./routes/parse-chat.ts";

const FROM_ONE = { integer: true, min: 1 };

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
