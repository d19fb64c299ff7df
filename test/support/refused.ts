import assert from "node:assert/strict";
import { ConfigError } from "../../server/errors.ts";

/**
 * For `assert.throws` and `assert.rejects`: the error's first line is one matching sentence, further lines are only
 * places in the project, and the message contains no secret of a test.
 */
export const refused = (sentence: RegExp) => (error: unknown) => {
  assert.ok(error instanceof ConfigError, String(error));
  const [line = "", ...places] = error.message.split("\n");
  assert.match(line, sentence);
  for (const place of places) assert.match(place, /^ {4}at [\w./]+:\d+$/);
  assert.doesNotMatch(error.message, /hush-hush|geheim|sk-|node:internal|node_modules/);
  return true;
};
