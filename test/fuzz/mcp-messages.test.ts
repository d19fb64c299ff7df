/** Any message to the MCP door, with any headers, gets a valid response of the protocol. */

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { RunInput } from "../../server/agent/run-function.ts";
import { KEY, MCP_ENV } from "../support/mcp-client.ts";
import { startServer } from "../support/start-server.ts";

const VERSIONS = ["2026-07-28", "2025-11-25", "2025-03-26", "1999-01-01", ""];
const METHODS = ["tools/call", "tools/list", "initialize", "ping", "server/discover", "notifications/cancelled", "x"];

/** Mostly one of these values, otherwise any JSON. */
const mostly = (...values: unknown[]) =>
  fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...values) }, fc.jsonValue({ maxDepth: 2 }));

const meta = fc.record(
  {
    "io.modelcontextprotocol/protocolVersion": mostly(...VERSIONS),
    "io.modelcontextprotocol/clientCapabilities": mostly({}),
    progressToken: mostly("p", 1),
  },
  { requiredKeys: [] },
);

const params = fc.record(
  {
    name: mostly("ask"),
    arguments: fc.oneof(
      { weight: 4, arbitrary: fc.record({ message: mostly("Hi"), conversation: mostly("c") }, { requiredKeys: [] }) },
      fc.jsonValue(),
    ),
    protocolVersion: mostly(...VERSIONS),
    requestId: mostly(1, "a"),
    _meta: fc.oneof({ weight: 5, arbitrary: meta }, fc.jsonValue()),
  },
  { requiredKeys: [] },
);

const message = fc.record(
  {
    jsonrpc: mostly("2.0"),
    id: mostly(1, "a", 0, ""),
    method: mostly(...METHODS),
    params: fc.oneof({ weight: 5, arbitrary: params }, fc.jsonValue()),
  },
  { requiredKeys: ["jsonrpc", "method"] },
);

const headers = fc.record(
  {
    "mcp-protocol-version": fc.constantFrom(...VERSIONS),
    "mcp-method": fc.constantFrom(...METHODS),
    "mcp-name": fc.constantFrom("ask", "=?base64?YXNr?=", "=?base64?%?=", "x"),
    "mcp-session-id": fc.constantFrom("a-session", ""),
    accept: fc.constantFrom("application/json", "text/event-stream", "*/*"),
  },
  { requiredKeys: [] },
);

test("any message with any headers is an answer, an error of JSON-RPC, or taken without one", async (t) => {
  const run = ({ message: text }: RunInput) => `You said ${text}`;
  const env = { ...MCP_ENV, PARLEY_RATE_PER_KEY: "100000", PARLEY_RATE_PER_ADDRESS: "100000" };
  const server = await startServer(t, { agent: { model: undefined, run } as never, env });
  const isAnswered = async (body: unknown, more: Record<string, string>) => {
    const response = await fetch(`${server.url}/mcp`, {
      method: "POST",
      headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json", ...more },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    assert.ok([200, 202, 400, 404].includes(response.status), `${response.status} ${text}`);
    if (response.status === 202) return assert.equal(text, "");
    const last = text.trim().split("\n").at(-1)?.replace("data: ", "") ?? "";
    const { jsonrpc, id, result, error } = JSON.parse(last);
    assert.deepEqual([jsonrpc, (result === undefined) !== (error === undefined)], ["2.0", true]);
    const { id: sent = null } = (body ?? {}) as { id?: unknown };
    assert.ok(id === null || id === sent);
  };
  await fc.assert(fc.asyncProperty(fc.oneof({ weight: 9, arbitrary: message }, fc.jsonValue()), headers, isAnswered), {
    numRuns: 600,
  });
});
