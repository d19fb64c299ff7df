/** docs/settings.md and the README's short table of settings, against the table in server/config/settings.ts. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { renderSettingsPage } from "../../build/settings-page.ts";
import { memoryDefaults } from "../../server/config/memory.ts";
import { readSettings, SETTINGS } from "../../server/config/settings.ts";
import { readMarkdown, section, tableRows } from "../support/markdown-file.ts";

test("docs/settings.md is up to date: npm run docs writes its tables", () => {
  const page = readMarkdown("docs/settings.md");
  assert.equal(renderSettingsPage(page), page);
});

test("the README names settings that there are, with their defaults", () => {
  const values: Readonly<Record<string, unknown>> = readSettings({}, {}, memoryDefaults(Infinity));
  const defaults = new Map(Object.entries(SETTINGS).map(([key, { name }]) => [name, values[key]]));
  const rows = tableRows(section(readMarkdown("README.md"), "## Settings"), "variable");
  assert.ok(rows.length > 5);
  for (const [names = "", shown = ""] of rows) {
    for (const [index, name] of (names.match(/\b[A-Z]+(?:_[A-Z]+)*\b/g) ?? []).entries()) {
      assert.ok(defaults.has(name), name);
      const value = defaults.get(name);
      if (typeof value === "number") assert.equal(shown.split(", ")[index], String(value), name);
    }
  }
});
