/** The tables of docs/api.md against those of the server. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { MAX_ATTACHMENT_BYTES, MEDIA_TYPES } from "../../server/protocol/attachments.ts";
import { ApiError, ERRORS, type ErrorCode } from "../../server/protocol/errors.ts";
import { REPOSITORY } from "../support/command.ts";
import { readMarkdown, section, tableRows } from "../support/markdown-file.ts";

const api = readMarkdown("docs/api.md");

const source = (path: string) => readFileSync(join(REPOSITORY, path), "utf8");
const sorted = <Item>(items: Iterable<Item>) => [...new Set(items)].sort();

test("docs/api.md lists exactly the endpoints of the route tables", () => {
  const routes = source("server/routes/index.ts");
  const served = [...[...routes.matchAll(/^ {2}"((?:GET|POST|WS) \/[^"]*)"/gm)].map(([, route = ""]) => route)].filter(
    (route) => route !== "GET /ws/chat",
  );
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
  const events = [...source("server/protocol/events.ts").matchAll(/^ {2}type: "(\w+)";$/gm)];
  assert.deepEqual(
    sorted(tableRows(section(api, "## Events"), "`type`").map(([type]) => type)),
    sorted(events.map(([, type]) => type)),
  );
  const closes = tableRows(api, "close code").map(([code]) => Number(code));
  const ours = Object.keys(ERRORS).map((code) => new ApiError(code as ErrorCode, "").closeCode);
  // Those of `ws` itself: not UTF-8, and too large.
  assert.deepEqual(sorted(closes), sorted([...new Set(ours), 1007, 1009]));
  const attachments = tableRows(section(api, "## Attachments"), "`type`");
  assert.deepEqual(
    attachments.flatMap(([type, list = ""]) => list.split(", ").map((name) => [name, type])),
    Object.entries(MEDIA_TYPES).map(([name, { type }]) => [name, type]),
  );
  assert.ok(api.includes(`${MAX_ATTACHMENT_BYTES.toLocaleString("en")} bytes`));
});
