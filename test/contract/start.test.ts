/** What the built command reads before it listens. */

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

/** Sources of a built file. */
function sourcesOf(file: string): string[] {
  const { sources } = JSON.parse(readFileSync(`dist/${file}.map`, "utf8"));
  return sources.map((source: string) => source.replace(/^.*?(?=server\/)/, ""));
}

/** What only messages need. */
const LATE = [
  /^server\/routes\/(?:chat|chat-socket|chat-endpoints|runs|remembered-state)\.ts$/,
  /^server\/routes\/(?:parse-chat|message-parser|send-run)\.ts$/,
  /^server\/(?:create-run-parts|tracing)\.ts$/,
  /^server\/agent\/(?:run|model-turn|tools)\.ts$/,
  /^server\/runs\/(?:run|run-log|reading)\.ts$/,
  /^server\/http\/(?:body|event-stream|socket-server)\.ts$/,
  /^server\/observe\/(?:run-record|trace-run)\.ts$/,
  /^server\/providers\/fallbacks\.ts$/,
  /^server\/providers\/responses\/(?:model|reader|input|output)\.ts$/,
  /^server\/providers\/chat\/(?:chat-completions|reader)\.ts$/,
];

test("a start reads the whole server, but nothing that only messages need", () => {
  const cli = readFileSync("dist/cli.js", "utf8");
  const [, whole] = /await import\("\.\/(cli-chunk-[^"]+\.js)"\)/.exec(cli) ?? [];
  assert.ok(whole, "dist/cli.js imports the rest of the command");
  const read = sourcesOf(whole);
  for (const file of ["server/index.ts", "server/routes/health.ts"]) {
    assert.ok(read.includes(file), file);
  }
  const others = readdirSync("dist")
    .filter((name) => /^cli-.*\.js$/.test(name) && name !== whole)
    .flatMap(sourcesOf);
  for (const pattern of LATE) {
    assert.deepEqual(
      read.filter((file) => pattern.test(file)),
      [],
    );
    assert.ok(
      others.some((file) => pattern.test(file)),
      `${pattern} is in a file that comes later`,
    );
  }
});
