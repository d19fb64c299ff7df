/** docs/settings.md, and the settings that other documents name, against the table in server/config/settings.ts. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { renderAll } from "../../build/docs.ts";
import { SETTINGS } from "../../server/config/settings.ts";
import { DOCUMENTS, readMarkdown, tableRows } from "../support/markdown-file.ts";

test("what npm run docs writes is up to date: docs/settings.md, docs/widget.md and public-types.ts", () => {
  for (const [path, { text, rendered }] of renderAll()) assert.equal(rendered, text, path);
});

test("docs/settings.md lists every setting once", () => {
  const listed = tableRows(readMarkdown("docs/settings.md"), "variable").map(([name]) => name);
  assert.deepEqual(
    listed.sort(),
    Object.values(SETTINGS)
      .map(({ name }) => name)
      .sort(),
  );
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
