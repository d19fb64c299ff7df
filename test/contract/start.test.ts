/** What the built command reads before it listens. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

/** Sources of the file that every start imports. */
function readByStart(): string[] {
  const cli = readFileSync("dist/cli.js", "utf8");
  const [, file] = /await import\("\.\/(cli-chunk-[^"]+\.js)"\)/.exec(cli) ?? [];
  assert.ok(file, "dist/cli.js imports the rest of the command");
  const { sources } = JSON.parse(readFileSync(`dist/${file}.map`, "utf8"));
  return sources.map((source: string) => source.replace(/^.*?(?=server\/)/, ""));
}

test("a start reads the whole server, but nothing that only messages need", () => {
  const read = readByStart();
  for (const file of ["server/index.ts", "server/routes/health.ts"]) {
    assert.ok(read.includes(file), file);
  }
  const late = read.filter((file) =>
    [
      /^server\/routes\/(?:chat|parse|message|send)/,
      /^server\/agent\/(?:run|model-turn|tools)\.ts$/,
      /^server\/runs\/(?:run|reading)\.ts$/,
      /^server\/http\/(?:body|event-stream|socket-server)\.ts$/,
      /^server\/observe\/(?:run-record|trace-run)\.ts$/,
      /^server\/providers\/fallbacks\.ts$/,
      /^server\/providers\/[a-z]+\/(?:chat-completions|model|reader|input)\.ts$/,
    ].some((pattern) => pattern.test(file)),
  );
  assert.deepEqual(late, []);
});
