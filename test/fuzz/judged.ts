/** Rules and limits for all parsers of client messages. */

import assert from "node:assert/strict";
import type { StateBinding } from "../../server/agent/state.ts";
import { ApiError } from "../../server/protocol/errors.ts";

export const MAX_JSON_DEPTH = 16;

export const binding: StateBinding = {
  kind: "conversation_history",
  agent: "Acme",
  user: undefined,
  provider: "demo",
  secrets: ["a-secret-of-a-test"],
  ownSecrets: ["a-secret-of-a-test"],
  limits: { maxHistoryItems: 200, maxHistoryBytes: 100_000 },
};

/** Whether a parser returns. If it throws, it must be a client error (4xx) with a sentence for the client. */
export function isJudged(parse: () => unknown): boolean {
  try {
    parse();
    return true;
  } catch (error) {
    assert.ok(error instanceof ApiError, `not ${error instanceof Error ? error.stack : error}`);
    assert.ok(error.status >= 400 && error.status < 500, error.code);
    assert.match(error.message, /^\S.*\.$/s);
    return false;
  }
}
