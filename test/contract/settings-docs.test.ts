/** docs/settings.md, and the settings that other documents name, against the table in server/config/settings.ts. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { renderSettingsPage } from "../../build/settings-page.ts";
import { SETTINGS } from "../../server/config/settings.ts";
import { DOCUMENTS, readMarkdown } from "../support/markdown-file.ts";

test("docs/settings.md is up to date: npm run docs writes its tables", () => {
  const page = readMarkdown("docs/settings.md");
  assert.equal(renderSettingsPage(page), page);
});

test("every PARLEY_ variable that a document names is a setting", () => {
  const known = new Set(["PARLEY_ENV_FILE", "PARLEY_SERVICE_HOST", ...Object.values(SETTINGS).map(({ name }) => name)]);
  for (const path of DOCUMENTS) {
    const named = readMarkdown(path).match(/\bPARLEY_[A-Z_]*[A-Z]\b(?!_|…)/g) ?? [];
    assert.deepEqual(
      [...new Set(named)].filter((name) => !known.has(name)),
      [],
      path,
    );
  }
});
