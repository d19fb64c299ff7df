/** docs/settings.md and the README's short table of settings, against what the code reads. */

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { LIVE_SETTINGS, readConfig } from "../../server/config.ts";
import { memoryDefaults } from "../../server/memory-defaults.ts";
import { REPOSITORY } from "../support/command.ts";
import { readMarkdown, section, tableRows } from "../support/markdown-file.ts";

const source = (path: string) => readFileSync(join(REPOSITORY, path), "utf8");
const sorted = <Item>(items: Iterable<Item>) => [...new Set(items)].sort();

/** Every environment variable that the server's sources read. */
function variablesInCode(): string[] {
  const files = readdirSync(join(REPOSITORY, "server"), { recursive: true, encoding: "utf8" });
  const code = [...files.filter((file) => file.endsWith(".ts")).map((file) => `server/${file}`), "cli.ts"]
    .map(source)
    .join("\n");
  const read = code.matchAll(/\(\s*env,\s*"([A-Z_]+)"/g);
  return sorted([...[...read].map(([, name = ""]) => name), "PORT", "HOST", "PARLEY_WORKERS"]);
}

const settings = readMarkdown("docs/settings.md");
const rowsOfSettings = settings
  .split(/^## /m)
  .slice(1)
  .flatMap((part) => tableRows(part, "variable"));
const rowsOfReadme = tableRows(section(readMarkdown("README.md"), "## Settings"), "variable");
const namesIn = (text = "") => text.match(/\b[A-Z]+(?:_[A-Z]+)*\b/g) ?? [];

test("docs/settings.md names exactly the settings that the code reads, and the README no others", () => {
  const known = variablesInCode();
  assert.deepEqual(sorted(rowsOfSettings.flatMap(([cell]) => namesIn(cell))), known);
  assert.ok(rowsOfReadme.length > 5);
  for (const name of rowsOfReadme.flatMap(([cell]) => namesIn(cell))) {
    assert.ok(known.includes(name), `README.md: ${name}`);
  }
});

test("docs/settings.md says of exactly those settings that they are live that SIGHUP takes over", () => {
  const live = rowsOfSettings.filter(([, , cell]) => cell === "yes").map(([name = ""]) => name);
  assert.deepEqual(sorted(live), sorted([...LIVE_SETTINGS]));
});

test("docs/settings.md and the README give the defaults that the code has", () => {
  const config = readConfig({}, {}, memoryDefaults(Infinity));
  const { port, host, maxAttachments, maxBodyBytes, message, tools, limits, resume, times } = config;
  const seconds = Object.entries({
    KEEP_ALIVE: times.keepAlive,
    FIRST_CHUNK: times.firstChunk,
    IDLE: times.idle,
    RUN: times.run,
    SEND: times.send,
    RESUME: resume.graceMs,
    DRAIN: times.drain,
    HEADER: times.header,
    BODY: times.body,
  }).map(([name, ms]) => [`PARLEY_${name}_SECONDS`, String(ms / 1000)] as [string, string]);
  const defaults: [string, string][] = [
    ["PORT", String(port)],
    ["HOST", host],
    ["PARLEY_MAX_ATTACHMENTS", String(maxAttachments)],
    ["PARLEY_MAX_BODY_BYTES", String(maxBodyBytes)],
    ["PARLEY_MAX_MESSAGE_CHARS", String(message.maxMessageChars)],
    ["PARLEY_MAX_HISTORY_ITEMS", String(message.maxHistoryItems)],
    ["PARLEY_MAX_HISTORY_BYTES", String(message.maxHistoryBytes)],
    ["PARLEY_MAX_JSON_DEPTH", String(message.maxDepth)],
    ["PARLEY_MAX_TOOL_CALLS", String(tools.maxCallsPerTurn)],
    ["PARLEY_MAX_TOOL_OUTPUT_CHARS", String(tools.maxOutputChars)],
    ["PARLEY_RESUME_BYTES", String(resume.maxBytes)],
    ["PARLEY_RESUME_TOTAL_BYTES", String(resume.maxTotalBytes)],
    ["PARLEY_MAX_CONNECTIONS", String(config.maxConnections)],
    ["PARLEY_MAX_LARGE_BODIES", String(config.maxLargeBodies)],
    ["PARLEY_MIN_UPLOAD_RATE", String(config.minUploadRate)],
    ["PARLEY_RATE_PER_KEY", String(limits.rates.perKey)],
    ["PARLEY_RATE_PER_ADDRESS", String(limits.rates.perAddress)],
    ["PARLEY_WIDGET_RATE_PER_ADDRESS", String(limits.rates.widgetPerAddress)],
    ["PARLEY_RATE_PER_SOCKET", String(limits.rates.framesPerSocket)],
    ["PARLEY_WRONG_KEYS_PER_ADDRESS", String(limits.rates.wrongKeysPerAddress)],
    ["PARLEY_MAX_RUNS", String(limits.runs.process)],
    ["PARLEY_MAX_RUNS_PER_KEY", String(limits.runs.perKey)],
    ["PARLEY_MAX_RUNS_PER_ADDRESS", String(limits.runs.perAddress)],
    ["PARLEY_WIDGET_MAX_RUNS_PER_ADDRESS", String(limits.runs.widgetPerAddress)],
    ["PARLEY_MAX_QUEUED_RUNS", String(limits.runs.queued)],
    ["PARLEY_QUEUE_SECONDS", String(limits.runs.queueMs / 1000)],
    ["PARLEY_MAX_SOCKETS", String(limits.sockets.process)],
    ["PARLEY_MAX_SOCKETS_PER_ADDRESS", String(limits.sockets.perAddress)],
    ["PARLEY_FORWARDED_HEADER", config.proxies.header],
    ...seconds,
  ];
  const inSettings = new Map(rowsOfSettings.map(([name, value]) => [name, value]));
  for (const [name = "", value] of defaults) {
    assert.equal(inSettings.get(name), value, `docs/settings.md: ${name}`);
  }
  const known = new Map<string, string>(defaults);
  for (const [names, values = ""] of rowsOfReadme) {
    const shown = values.split(", ");
    for (const [index, name] of namesIn(names).entries()) {
      const value = known.get(name);
      if (value !== undefined) assert.equal(shown[index], value, `README.md: ${name}`);
    }
  }
});
