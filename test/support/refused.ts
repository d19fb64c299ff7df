import assert from "node:assert/strict";
import { ConfigError } from "../../server/errors.ts";

/**
 * For `assert.throws` and `assert.rejects`: the mistake is one sentence on one line, below it only places in the project, and
 * no secret of a test is in it.
 */
export const refused = (sentence: RegExp) => (error: unknown) => {
  assert.ok(error instanceof ConfigError, String(error));
  const [line = "", ...places] = error.message.split("\n");
  assert.match(line, sentence);
  for (const place of places) assert.match(place, /^ {4}at [\w./]+:\d+$/);
  assert.doesNotMatch(error.message, /hush-hush|geheim|sk-|node:internal|node_modules/);
  return true;
};
