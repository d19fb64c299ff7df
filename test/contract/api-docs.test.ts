/** docs/api.md against what the server really says. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { WebSocket } from "ws";
import { MAX_ATTACHMENT_BYTES, MEDIA_TYPES } from "../../server/protocol/attachments.ts";
import { CLOSE } from "../../server/protocol/close-codes.ts";
import { ERRORS } from "../../server/protocol/errors.ts";
import { REPOSITORY, start } from "../support/command.ts";
import { codeBlocks, findBlock, readMarkdown, section, tableRows } from "../support/markdown-file.ts";

/**
 * Whether a shown value is the real one, where "…" at the end of a text stands for the rest of it, as an
 * element alone for more elements, and times are not compared.
 */
function assertShown(real: unknown, shown: unknown, at = ""): void {
  if (typeof shown === "string" && shown.endsWith("…")) {
    assert.equal(`${String(real).slice(0, shown.length - 1)}…`, shown, at);
  } else if (Array.isArray(shown) && Array.isArray(real)) {
    const open = shown.at(-1) === "…";
    const items = open ? shown.slice(0, -1) : shown;
    assert.ok(open ? real.length >= items.length : real.length === items.length, `${at} length`);
    for (const [index, item] of items.entries()) assertShown(real[index], item, `${at}/${index}`);
  } else if (typeof shown === "object" && shown !== null && typeof real === "object" && real) {
    assert.deepEqual(Object.keys(real).sort(), Object.keys(shown).sort(), `${at} fields`);
    const values = new Map(Object.entries(real));
    for (const [name, value] of Object.entries(shown)) {
      if (name === "duration_ms") assert.equal(typeof values.get(name), "number");
      else assertShown(values.get(name), value, `${at}/${name}`);
    }
  } else {
    assert.equal(real, shown, at);
  }
}

/** Shown events must come in this order, and directly one after another where no "…" stands between. */
function assertShownEvents(real: readonly unknown[], shown: readonly (string | unknown)[]): void {
  let next = 0;
  let skips = false;
  for (const event of shown) {
    if (event === "…") {
      skips = true;
      continue;
    }
    if (skips) {
      const type = typeOf(event);
      while (next < real.length && typeOf(real[next]) !== type) next++;
    }
    assertShown(real[next++], event, `event ${next}`);
    skips = false;
  }
  if (!skips) assert.equal(real.length, next, "events after the last one that is shown");
}

/** The event's `type`, if it is an event at all. */
function typeOf(event: unknown): unknown {
  return typeof event === "object" && event !== null && "type" in event ? event.type : undefined;
}

const run = promisify(execFile);
const api = readMarkdown("docs/api.md");

const source = (path: string) => readFileSync(join(REPOSITORY, path), "utf8");
const sorted = <Item>(items: Iterable<Item>) => [...new Set(items)].sort();

function dataLines(stream: string): unknown[] {
  return stream
    .split("\n")
    .filter((line) => line.startsWith("data: ") || line === "…")
    .map((line) => (line === "…" ? line : JSON.parse(line.slice(6))));
}

const blocks = codeBlocks(api);
const shownCalls = blocks.flatMap(({ language, text }, index) => {
  const answer = blocks[index + 1];
  return language === "sh" && answer !== undefined ? [{ command: text, answer }] : [];
});

test("docs/api.md shows a real answer after each of its curl commands", async (t) => {
  const { host } = await start(t, []);
  assert.ok(shownCalls.length >= 5);
  for (const { command, answer } of shownCalls) {
    await t.test(command.trim(), async () => {
      const turned = command.replace("curl ", "curl -sS ").replace("localhost:8080", host);
      const { stdout } = await run("bash", ["-c", turned]);
      if (answer.language === "json") assertShown(JSON.parse(stdout), JSON.parse(answer.text));
      else assertShownEvents(dataLines(stdout), dataLines(answer.text));
    });
  }
});

test("docs/api.md shows a WebSocket conversation as it really goes", async (t) => {
  const { host } = await start(t, []);
  const rounds = findBlock(api, "text", '< {"type":"cleared"').split(/^> /m).slice(1);
  const socket = new WebSocket(`ws://${host}/ws/chat`);
  t.after(() => socket.terminate());
  await new Promise((resolve) => socket.once("open", resolve));
  for (const round of rounds) {
    const [message = "", ...answer] = round.trim().split("\n");
    const shown = answer.map((line) => (line === "…" ? line : JSON.parse(line.slice(2))));
    const real: unknown[] = [];
    const ended = new Promise<void>((resolve) => {
      socket.on("message", (data) => {
        real.push(JSON.parse(String(data)));
        if (["done", "error", "cleared"].includes(String(typeOf(real.at(-1))))) resolve();
      });
    });
    socket.send(message);
    await ended;
    socket.removeAllListeners("message");
    assertShownEvents(real, shown);
  }
});

test("docs/api.md shows the history that the demo's tool call really leaves", async (t) => {
  const { url } = await start(t, []);
  const response = await fetch(new URL("api/chat", url), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ message: "What is the weather in Paris?", stream: false }),
  });
  const shown = JSON.parse(findBlock(section(api, "## State"), "json", "tool_calls"));
  assertShown((await response.json()).state.conversation_history, shown);
});

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
  assert.deepEqual(sorted(closes), sorted(Object.values(CLOSE)));
  const attachments = tableRows(section(api, "## Attachments"), "`type`");
  assert.deepEqual(
    attachments.flatMap(([type, list = ""]) => list.split(", ").map((name) => [name, type])),
    Object.entries(MEDIA_TYPES).map(([name, { type }]) => [name, type]),
  );
  assert.ok(api.includes(`${MAX_ATTACHMENT_BYTES.toLocaleString("en")} bytes`));
});
