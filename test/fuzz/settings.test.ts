/** Any environment gives settings, or a sentence that names the mistake. */

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readSettings, SETTINGS } from "../../server/config/settings.ts";
import { ConfigError } from "../../server/errors.ts";

const NAMES = Object.values(SETTINGS).map(({ name }) => name);

test("any environment is settings or a sentence that names the variable", () => {
  const value = fc.oneof(
    fc.constantFrom("", " ", ",", "*", "0", "-1", "1e9", "0x10", "NaN", "8080", "https://a.example", "10.0.0.0/8"),
    fc.string(),
  );
  const property = fc.property(fc.dictionary(fc.constantFrom(...NAMES), value, { maxKeys: 3 }), (env) => {
    try {
      const { port } = readSettings(env);
      assert.ok(Number.isInteger(port) && port >= 0 && port < 65_536);
    } catch (error) {
      assert.ok(error instanceof ConfigError, String(error));
      assert.ok(
        Object.keys(env).some((name) => error.message.includes(name)),
        error.message,
      );
    }
  });
  fc.assert(property, { numRuns: 1000 });
});
