/** Whatever stands in the environment is a setting or a mistake that is named. */

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readConfig } from "../../server/config.ts";
import { SetupError } from "../../server/providers/failures/provider-error.ts";

test("any environment is a configuration or a sentence that names the variable", () => {
  const NAMES = [
    "PORT",
    "HOST",
    "PARLEY_API_KEY",
    "PARLEY_ALLOWED_ORIGINS",
    "PARLEY_STATE_SECRET",
    "PARLEY_RUN_SECONDS",
    "PARLEY_MAX_BODY_BYTES",
    "PARLEY_MAX_RUNS",
    "PARLEY_RATE_PER_KEY",
    "PARLEY_TRUSTED_PROXIES",
    "PARLEY_RESUME_BYTES",
  ] as const;
  const value = fc.oneof(
    fc.constantFrom("", " ", ",", "*", "0", "-1", "1e9", "0x10", "NaN", "8080", "https://a.example", "10.0.0.0/8"),
    fc.string(),
  );
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom(...NAMES), value), (env) => {
      try {
        const { port } = readConfig({}, env);
        assert.ok(Number.isInteger(port) && port >= 0 && port < 65_536);
      } catch (error) {
        assert.ok(error instanceof SetupError, String(error));
        assert.ok(
          NAMES.some((name) => error.message.includes(name)),
          error.message,
        );
      }
    }),
    { numRuns: 500 },
  );
});
