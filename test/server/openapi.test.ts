/** `GET /openapi.json` for a server and its agent. `described.ts` compares it with the responses of all tests. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { registerSchema, validate } from "@hyperjump/json-schema/openapi-3-1";
import { createParley } from "../../server/mount.ts";
import { defineAgent } from "../../server/parley-agent.ts";
import { ERRORS } from "../../server/protocol/errors.ts";
import { post } from "../support/chat-transports.ts";
import { REPOSITORY } from "../support/command.ts";
import { listen } from "../support/listen.ts";
import { doorFiles, routesIn } from "../support/route-tables.ts";
import { call, say } from "../support/scripted-provider.ts";
import { type Cleanup, type ServerOptions, startServer } from "../support/start-server.ts";
import { define } from "../support/test-tools.ts";

/** The OpenAPI document of a server with these options. */
async function documentOf(t: Cleanup, options: ServerOptions = {}, path = "/openapi.json") {
  const server = await startServer(t, { turns: [], ...options });
  const response = await fetch(server.url + path);
  assert.equal(response.status, 200);
  return await response.json();
}

const pathsOf = async (t: Cleanup, options?: ServerOptions) => Object.keys((await documentOf(t, options)).paths);

/** All operations of a document, by method and path. */
function operationsOf({ paths }: { paths: Record<string, Record<string, object>> }): [string, Record<string, never>][] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, operation]): [string, Record<string, never>][] =>
      method === "servers" ? [] : [[`${method.toUpperCase()} ${path}`, operation as Record<string, never>]],
    ),
  );
}

/** Options that add every route, or change the description of others. */
const EVERYTHING: ServerOptions = {
  agent: { agent: "Ada", onFeedback() {}, accepts: ["image/png"] },
  env: { PARLEY_API_KEY: "a-key-of-more-than-twenty-characters", PARLEY_MCP: "on", PARLEY_OPENAI_API: "on" },
  authenticate: () => undefined,
};

test("the document is OpenAPI 3.1 by the schema of its makers, whatever is open", async (t) => {
  for (const options of [{}, EVERYTHING, { agent: { accepts: [] } }, { env: { PARLEY_BASE_PATH: "/support" } }]) {
    const path = "env" in options && "PARLEY_BASE_PATH" in options.env ? "/support/openapi.json" : "/openapi.json";
    const output = await validate(
      "https://spec.openapis.org/oas/3.1/schema-base",
      await documentOf(t, options, path),
      "BASIC",
    );
    assert.ok(output.valid, JSON.stringify(output));
  }
});

test("every name that the document refers to is there, and each operation has an id of its own", async (t) => {
  const document = await documentOf(t, EVERYTHING);
  const named = JSON.stringify(document).match(/(?<="\$ref":"#\/components\/schemas\/)\w+/g) ?? [];
  const known = Object.keys(document.components.schemas);
  assert.deepEqual(
    named.filter((name) => !known.includes(name)),
    [],
  );
  const ids = operationsOf(document).map(([, { operationId }]) => operationId);
  assert.equal(new Set(ids).size, ids.length);
});

test("it has exactly the routes that are open but for the page, its scripts and its images", async (t) => {
  const routes = routesIn("server/routes/index.ts", ...doorFiles()).filter((route) => !route.startsWith("WS "));
  const site = ["GET /", "GET /widget.js", "GET /widget.js.map", "GET /chunks/{name}", "GET /chat/{name}"];
  const described = operationsOf(await documentOf(t, EVERYTHING)).map(([route]) => route);
  assert.deepEqual(described.sort(), routes.filter((route) => !site.includes(route)).sort());

  const plain = await pathsOf(t);
  assert.ok(
    !plain.includes("/api/feedback") &&
      !plain.includes("/mcp") &&
      !plain.includes("/v1/models") &&
      plain.includes("/metrics"),
  );
  assert.ok(!(await pathsOf(t, { env: { PARLEY_METRICS: "off" } })).includes("/metrics"));
});

test("it says the agent's name, its limits, and what it takes", async (t) => {
  const env = { ...EVERYTHING.env, PARLEY_MAX_MESSAGE_CHARS: "321", PARLEY_MAX_ATTACHMENTS: "3" };
  const { info, components, security, paths } = await documentOf(t, { ...EVERYTHING, env });
  const { version } = JSON.parse(readFileSync(join(REPOSITORY, "package.json"), "utf8"));
  assert.deepEqual([info.title, info.version], ["Ada", version]);
  const { ChatRequest, Attachment, ErrorCode } = components.schemas;
  assert.equal(ChatRequest.properties.message.anyOf[0].maxLength, 321);
  assert.equal(ChatRequest.properties.attachments.anyOf[0].maxItems, 3);
  assert.deepEqual(Attachment.properties.mime_type.enum, ["image/png"]);
  assert.deepEqual(ErrorCode.enum, Object.keys(ERRORS));
  assert.deepEqual(security, [{ key: [], user: [] }, { key: [] }]);
  const securityOf = (all: typeof paths, path: string) => all[path].get.security;
  assert.deepEqual(securityOf(paths, "/health"), []);
  assert.deepEqual(securityOf(paths, "/api/info"), [{ user: [] }, {}]);
  assert.deepEqual(securityOf(paths, "/metrics"), [{ key: [] }]);
  const { security: none, components: plain, paths: open } = await documentOf(t);
  assert.deepEqual([none, plain.securitySchemes], [undefined, undefined]);
  assert.deepEqual([securityOf(open, "/api/info"), securityOf(open, "/metrics")], [[], []]);
});

test("below a path the addresses stand below it, but for the metrics, which stay at the root", async (t) => {
  const document = await documentOf(t, { env: { PARLEY_BASE_PATH: "/support" } }, "/support/openapi.json");
  assert.deepEqual(document.servers, [{ url: "/support" }]);
  assert.deepEqual(document.paths["/metrics"].servers, [{ url: "/" }]);
  assert.deepEqual((await documentOf(t)).servers, [{ url: "/" }]);
});

test("on a server of one's own there are no metrics, and the addresses stand below its path", async (t) => {
  const { handle, close } = await createParley({
    agent: defineAgent({ name: "Acme", model: "demo" }),
    basePath: "/ask",
  });
  t.after(close);
  const url = await listen(t, createServer(handle));
  const { servers, paths } = await (await fetch(`${url}/ask/openapi.json`)).json();
  assert.deepEqual([servers, "/metrics" in paths, "/api/chat" in paths], [[{ url: "/ask" }], false, true]);
});

test("it is open as /api/info is, without a key and for pages of allowed sites, and PARLEY_DOCS switches it off", async (t) => {
  const env = { PARLEY_API_KEY: "a-key-of-more-than-twenty-characters", PARLEY_ALLOWED_ORIGINS: "https://a.example" };
  const server = await startServer(t, { turns: [], env });
  const open = await fetch(`${server.url}/openapi.json`, { headers: { origin: "https://a.example" } });
  assert.deepEqual([open.status, open.headers.get("access-control-allow-origin")], [200, "https://a.example"]);
  const off = await startServer(t, { turns: [], env: { PARLEY_DOCS: "off" } });
  const response = await fetch(`${off.url}/openapi.json`);
  assert.equal(response.status, 404);
  assert.match((await response.json()).error.message, /PARLEY_DOCS/);
});

test("a schema of the document refuses what the server refuses", async (t) => {
  const server = await startServer(t, {
    agent: { tools: [define("pay", () => "paid")] },
    turns: [[call("a", "pay")], [say("Done.")]],
  });
  const { components } = await (await fetch(`${server.url}/openapi.json`)).json();
  const root = "https://test.example/openapi";
  registerSchema({ $schema: "https://json-schema.org/draft/2020-12/schema", $id: root, components } as never, root);
  const fits = async (body: object) => (await validate(`${root}#/components/schemas/ChatRequest`, body as never)).valid;
  const bodies: [body: object, status: number][] = [
    [{ message: "Hi", stream: false, state: null, extra: 1 }, 200],
    [{ message: 5, stream: false }, 400],
    [{ message: "Hi" }, 400],
    [{ message: "Hi", stream: false, metadata: { "a b": "c" } }, 400],
    [{ message: "Hi", stream: false, run: "short" }, 400],
    [{ message: "Hi", stream: false, attachments: [{ type: "image" }] }, 400],
  ];
  for (const [body, status] of bodies) {
    assert.equal((await post(server, body)).status, status, JSON.stringify(body));
    assert.equal(await fits(body), status === 200, JSON.stringify(body));
  }
});
