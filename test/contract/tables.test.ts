/** Compares the documents' tables, and the files of examples/deploy, with the server. */

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { renderAll } from "../../build/docs.ts";
import { readSettings, SETTINGS } from "../../server/config/settings.ts";
import { MAX_ATTACHMENT_BYTES, MAX_TEXT_BYTES, MEDIA_TYPES, TEXT_TYPES } from "../../server/protocol/attachments.ts";
import { FINISH_REASONS } from "../../server/protocol/chat.ts";
import { ApiError, ERRORS, type ErrorCode } from "../../server/protocol/errors.ts";
import { REPOSITORY } from "../support/command.ts";
import { DOCUMENTS, readMarkdown, section, tableRows } from "../support/markdown-file.ts";
import { doorFiles, routesIn } from "../support/route-tables.ts";

const api = readMarkdown("docs/api.md");

const source = (path: string) => readFileSync(join(REPOSITORY, path), "utf8");
const sorted = <Item>(items: Iterable<Item>) => [...new Set(items)].sort();

test("docs/api.md lists exactly the endpoints of the route tables", () => {
  const served = routesIn("server/routes/index.ts", ...doorFiles()).filter((route) => route !== "GET /ws/chat");
  const listed = tableRows(api, "endpoint").map(([endpoint]) => endpoint);
  assert.deepEqual(sorted(listed), sorted(served));
});

test("docs/api.md lists exactly the error codes, each with its status and whether a retry helps", () => {
  const listed = tableRows(api, "code").map((row) => row.slice(0, 3));
  const known = Object.entries(ERRORS).map(([code, { status, retryable }]) => [
    code,
    String(status),
    retryable ? "yes" : "no",
  ]);
  assert.deepEqual(new Map(listed.map((row) => [row[0], row])), new Map(known.map((row) => [row[0], row])));
});

test("docs/api.md lists exactly the events, close codes and attachment types", () => {
  const events = [
    ...`${source("server/protocol/events.ts")}${source("server/protocol/sources.ts")}`.matchAll(
      /^ {2}type: "(\w+)";$/gm,
    ),
  ];
  assert.deepEqual(
    sorted(tableRows(section(api, "## Events"), "`type`").map(([type]) => type)),
    sorted(events.map(([, type]) => type)),
  );
  const closes = tableRows(api, "close code").map(([code]) => Number(code));
  const ours = Object.keys(ERRORS).map((code) => new ApiError(code as ErrorCode, "").closeCode);
  // `ws` itself uses 1007 (not UTF-8) and 1009 (too large).
  assert.deepEqual(sorted(closes), sorted([...new Set(ours), 1007, 1009]));
  const attachments = tableRows(section(api, "## Attachments"), "`type`");
  assert.deepEqual(
    attachments.flatMap(([type, list = ""]) => list.split(", ").map((name) => [name, type])),
    [
      ...Object.entries(MEDIA_TYPES).map(([name, { type }]) => [name, type]),
      ...Object.keys(TEXT_TYPES).map((name) => [name, "file"]),
    ],
  );
  for (const most of [MAX_ATTACHMENT_BYTES, MAX_TEXT_BYTES]) {
    assert.ok(api.includes(`${most.toLocaleString("en")} bytes`));
  }
});

test("docs/api.md lists exactly the reasons for which a run ends", () => {
  const listed = tableRows(section(api, "### `finish_reason`"), "value").map(([reason]) => reason);
  assert.deepEqual(sorted(listed), sorted(Object.keys(FINISH_REASONS)));
});

test("docs/mcp.md quotes the log as the server writes it", () => {
  const folders = ["server/mcp", "server/agent", "server/config"];
  const code = folders.flatMap((folder) =>
    readdirSync(join(REPOSITORY, folder)).map((name) => source(`${folder}/${name}`)),
  );
  const names = /\b(?:files|crm|300|30)\b|"[^"]*"|…|(?<=none:)/;
  const parts = tableRows(readMarkdown("docs/mcp.md"), "the log says").flatMap(([quoted = ""]) => quoted.split(names));
  assert.ok(parts.length > 16);
  const words = parts.map((part) => part.trim().replace(/\.$/, ""));
  assert.deepEqual(
    words.filter((part) => !code.some((text) => text.includes(part))),
    [],
  );
});

// Compares docs/settings.md, and settings named in other documents, with the table in server/config/settings.ts.

test("what npm run docs writes is up to date", () => {
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

// The files of examples/deploy: their times, metrics and settings.

test("the examples of deploying go together with the defaults", () => {
  const { runSeconds, drainSeconds } = readSettings({});
  const figures = (file: string, pattern: RegExp) => {
    const found = [...readMarkdown(file).matchAll(pattern)].map(([, figure]) => Number(figure));
    assert.ok(found.length > 0, `${file}: ${pattern}`);
    return Math.min(...found);
  };
  assert.ok(figures("examples/deploy/nginx.conf", /proxy_read_timeout (\d+)s;/g) > runSeconds);
  assert.ok(figures("examples/deploy/haproxy.cfg", /timeout (?:client|server) +(\d+)s/g) > runSeconds);
  assert.ok(figures("examples/deploy/parley@.service", /TimeoutStopSec=(\d+)/g) > drainSeconds);
  assert.ok(figures("docs/deploying.md", /--stop-timeout (\d+)/g) > drainSeconds);
});

test("the autoscaler adds a pod before the pods that there are carry all they can", () => {
  const target = /averageValue: "(\d+)"/.exec(readMarkdown("examples/deploy/kubernetes/parley.yaml"))?.[1];
  assert.equal(Number(target), readSettings({}).maxRuns / 2);
});

test("the containers' time to stop is that of the drain and 15 seconds", () => {
  const seconds = readSettings({}).drainSeconds + 15;
  assert.match(readMarkdown("examples/deploy/compose.yaml"), new RegExp(`stop_grace_period: ${seconds}s`));
  const deployment = readMarkdown("examples/deploy/kubernetes/parley.yaml");
  assert.match(deployment, new RegExp(`terminationGracePeriodSeconds: ${seconds}\\b`));
});

test("alerts and dashboard use metrics that the server has, and variables of the examples are settings", () => {
  const rows = tableRows(section(readMarkdown("docs/api.md"), "## Metrics"), "metric").map(([name = ""]) => name);
  const own = new Set(rows);
  for (const file of ["alerts.yaml", "grafana-dashboard.json"]) {
    const text = readMarkdown(`examples/deploy/monitoring/${file}`);
    const used = [...new Set(text.match(/\bparley_[a-z_]+/g))].map((name) => name.replace(/_bucket$/, ""));
    assert.ok(used.length > 3);
    assert.deepEqual(
      used.filter((name) => !own.has(name)),
      [],
      file,
    );
  }
  const known = new Set(Object.values(SETTINGS).map(({ name }) => name));
  // These are the files' own variables, for the agent's folder, its host and its .env.
  for (const name of ["PARLEY_AGENT", "PARLEY_HOST"]) known.add(name);
  for (const file of ["compose.yaml", "kubernetes/parley.yaml"]) {
    const used = readMarkdown(`examples/deploy/${file}`).match(/\bPARLEY_[A-Z_]+\b/g) ?? [];
    assert.deepEqual(
      used.filter((name) => !known.has(name)),
      [],
      file,
    );
  }
});
