/** What every parser of a client's message must keep to, and the rules that it gets. */

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

/** What a parser may do: return, or refuse in words that are the client's to read. */
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
