/** Paths open to everybody: the chat page and the widget, as browsers and proxies get them, health and info. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { post } from "../support/chat-transports.ts";
import { DIST } from "../support/command.ts";
import { CHAT_HEAD, chatRequest, connectRaw, startWithRaw } from "../support/raw-connection.ts";
import { say } from "../support/scripted-provider.ts";
import { startServer, type TestServer } from "../support/start-server.ts";

const CHUNKS = join(DIST, "public/chunks");

const DECODE = {
  br: brotliDecompressSync,
  gzip: gunzipSync,
  identity: (bytes: Buffer) => bytes,
} as const;

/** Requests a path without decoding the response. */
async function get(t: Parameters<typeof connectRaw>[0], server: TestServer, path: string, ...headers: string[]) {
  const raw = await connectRaw(t, server);
  await raw.write(`GET ${path} HTTP/1.1`, "host: 127.0.0.1", ...headers, "", "");
  const answer = await raw.answer();
  return { ...answer, bytes: Buffer.from(answer.body, "latin1") };
}

const CODINGS: [path: string, accept: string | undefined, coding: keyof typeof DECODE][] = [
  ["/widget.js", "gzip, deflate, br, zstd", "br"],
  ["/widget.js", "gzip, deflate", "gzip"],
  ["/widget.js", "br;q=0, gzip;q=0.5", "gzip"],
  ["/widget.js", "BR", "br"],
  ["/widget.js", "deflate", "identity"],
  ["/widget.js", "gzip;q=0", "identity"],
  ["/widget.js", undefined, "identity"],
  ["/", "gzip", "gzip"],
  ["/", "br", "br"],
];

test("every chunk that is built is served to any site, compressed, to be kept for ever, and nothing else at that path", async (t) => {
  const server = await startServer(t, { turns: [] });
  const names = readdirSync(CHUNKS).filter((name) => name.endsWith(".js"));
  assert.ok(names.length > 0);
  for (const name of names) {
    const answer = await get(t, server, `/chunks/${name}`, "accept-encoding: br", "origin: https://a.example");
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get("content-type"), "text/javascript; charset=utf-8");
    assert.equal(answer.headers.get("cache-control"), "public, max-age=31536000, immutable");
    assert.equal(answer.headers.get("access-control-allow-origin"), "*");
    assert.equal(answer.headers.get("cross-origin-resource-policy"), "cross-origin");
    const script = brotliDecompressSync(answer.bytes).toString("utf8");
    assert.equal(script, readFileSync(join(CHUNKS, name), "utf8"));
    assert.equal(answer.headers.get("sourcemap"), `${name}.map`);
  }
  for (const path of [
    "",
    "/",
    `/${names[0]}.gz`,
    "/highlight.js",
    "/../widget.js",
    "/..%2fwidget.js",
    `/%2e/${names[0]}`,
    "/constructor",
  ]) {
    assert.equal((await get(t, server, `/chunks${path}`)).status, 404, path);
  }
});

test("scripts say where their source maps are, which are served, and name no path of the machine", async (t) => {
  const server = await startServer(t, { turns: [] });
  const [chunk = ""] = readdirSync(CHUNKS).filter((name) => /^panel-.*\.js$/.test(name));
  for (const path of ["/widget.js", `/chunks/${chunk}`]) {
    const name = (await get(t, server, path)).headers.get("sourcemap") ?? assert.fail(path);
    const map = await get(t, server, new URL(name, `http://a.example${path}`).pathname);
    assert.equal(map.headers.get("content-type"), "application/json; charset=utf-8");
    const { sources } = JSON.parse(map.bytes.toString("utf8"));
    assert.ok(
      sources.some((source: string) => /^(?:\.\.\/)+widget\/\w+/.test(source)),
      String(sources),
    );
  }
});

for (const [path, accept, coding] of CODINGS) {
  test(`${path} with accept-encoding "${accept ?? "none"}" comes as ${coding}`, async (t) => {
    const server = await startServer(t, { turns: [] });
    const headers = accept === undefined ? [] : [`accept-encoding: ${accept}`];
    const answer = await get(t, server, path, ...headers);
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get("content-encoding") ?? "identity", coding);
    assert.match(answer.headers.get("vary") ?? "", /accept-encoding/);
    const text = DECODE[coding](answer.bytes).toString("utf8");
    if (path === "/widget.js") assert.equal(text, readFileSync(join(DIST, "public/widget.js"), "utf8"));
    else assert.match(text, /^<!doctype html>/i);
  });
}

for (const path of ["/", "/?embed=1", "/widget.js"]) {
  test(`${path} has an ETag, and 304 for a client that knows it`, async (t) => {
    const server = await startServer(t, { turns: [] });
    const first = await get(t, server, path);
    const etag = first.headers.get("etag") ?? "";
    assert.match(etag, /^W\/"[\w-]{20,}"$/);
    for (const known of [etag, `"x", ${etag}`, "*", etag.slice(2)]) {
      const again = await get(t, server, path, `if-none-match: ${known}`);
      assert.equal(again.status, 304, known);
      assert.equal(again.body, "");
      assert.equal(again.headers.get("etag"), etag);
      assert.equal(again.headers.get("cache-control"), first.headers.get("cache-control"));
    }
    assert.equal((await get(t, server, path, 'if-none-match: W/"other"')).status, 200);
  });

  test(`${path} is nosniff, sends no Referer, and cannot be overridden in its type`, async (t) => {
    const server = await startServer(t, { turns: [] });
    const { headers } = await get(t, server, path);
    assert.equal(headers.get("x-content-type-options"), "nosniff");
    assert.equal(headers.get("referrer-policy"), "no-referrer");
    const type = path.endsWith(".js") ? "text/javascript" : "text/html";
    assert.equal(headers.get("content-type"), `${type}; charset=utf-8`);
  });
}

test("the page's policy lets nothing run, load or send but our own", async (t) => {
  const server = await startServer(t, { turns: [] });
  for (const path of ["/", "/?embed=1"]) {
    const policy = (await get(t, server, path)).headers.get("content-security-policy") ?? "";
    const directives = new Map(
      policy.split("; ").map((directive) => {
        const [name = "", ...sources] = directive.split(" ");
        return [name, sources.join(" ")];
      }),
    );
    assert.equal(directives.get("default-src"), "'none'");
    assert.equal(directives.get("script-src"), "'self'");
    assert.equal(directives.get("connect-src"), "'self'");
    assert.equal(directives.get("base-uri"), "'none'");
    assert.equal(directives.get("form-action"), "'none'");
    assert.doesNotMatch(policy, /unsafe-|https?:(?!\/\/(?:localhost|127\.0\.0\.1):\*)/);
  }
});

test("the page holds nothing inline but one style sheet, which its policy allows alone, and what everybody may know of the agent, as data", async (t) => {
  const welcome = "</script><script>alert(1)</script> <!-- \u2028 {{title}} $& &amp;";
  const server = await startServer(t, {
    turns: [],
    agent: { name: "{{data}}", chat: { welcome, suggestions: ["One"] } },
    env: { PARLEY_CHAT_KEY: "a-secret" },
  });
  const info = await (await fetch(`${server.url}/api/info`)).json();
  for (const path of ["/", "/?embed=1"]) {
    const { bytes, headers } = await get(t, server, path, "x-api-key: a-secret");
    const html = bytes.toString("utf8");
    const [data = "", ...more] =
      html.match(/(?<=<script type="application\/json" id="page-data">)[^<]*(?=<\/script>)/g) ?? [];
    assert.deepEqual(more, []);
    assert.deepEqual(JSON.parse(data), { info, images: "none", sites: [] });
    assert.doesNotMatch(data, /\u2028/);
    const [style = "", ...others] = html.match(/(?<=<style>)[^<]*(?=<\/style>)/g) ?? [];
    assert.deepEqual(others, []);
    assert.doesNotMatch(
      html.replace(/<style>/, ""),
      /<style|style=|\son\w+=|<script(?! type="application\/json")(?![^>]*\ssrc=)/i,
    );
    const hash = createHash("sha256").update(style).digest("base64");
    const policy = headers.get("content-security-policy") ?? "";
    assert.ok(policy.includes(`; style-src 'self' 'sha256-${hash}'; `), policy);
  }
});

test("the agent's name is the page's title, as text", async (t) => {
  const name = `</title><script>alert("1")</script> & $& Co`;
  const server = await startServer(t, { turns: [], agent: { name } });
  const html = (await get(t, server, "/")).bytes.toString("utf8");
  const title = "&lt;/title&gt;&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; $&amp; Co";
  assert.ok(html.includes(`<title>${title}</title>`), html);
  assert.doesNotMatch(html, /\{\{/);
});

test("embed=1 alone selects the embedded page", async (t) => {
  const server = await startServer(t, { turns: [] });
  const page = (await get(t, server, "/")).body;
  const embedded = (await get(t, server, "/?embed=1")).body;
  assert.notEqual(embedded, page);
  assert.equal((await get(t, server, "/?theme=dark&embed=1")).body, embedded);
  for (const query of ["?embed=0", "?embed", "?embed=11", "?EMBED=1"]) {
    assert.equal((await get(t, server, `/${query}`)).body, page, query);
  }
});

// The open endpoints, and headers of every response.

const read = async (url: string) => JSON.parse(await (await fetch(url)).text());

test("/health is {status: ok} and /health/ready is 200 while the server serves", async (t) => {
  const server = await startServer(t, { turns: [] });
  assert.deepEqual(await read(`${server.url}/health`), { status: "ok" });
  assert.equal((await fetch(`${server.url}/health/ready`)).status, 200);
});

test("/api/info says who the agent is and what the chat page needs", async (t) => {
  const agent = {
    name: "Acme Support",
    agent: "Concierge",
    chat: { welcome: "Hi!", suggestions: ["What can you do?"], disclaimer: "Answers may be wrong." },
  };
  const server = await startServer(t, { turns: [], agent });
  assert.deepEqual(await read(`${server.url}/api/info`), {
    name: "Acme Support",
    agent: "Concierge",
    auth_required: false,
    welcome: "Hi!",
    suggestions: ["What can you do?"],
    disclaimer: "Answers may be wrong.",
    chat: {
      welcome: "Hi!",
      suggestions: [{ label: "What can you do?", prompt: "What can you do?" }],
      disclaimer: "Answers may be wrong.",
    },
    continue: true,
    attachments: {
      media_types: ["image/jpeg", "image/png", "image/gif", "image/webp", "application/pdf"],
      max_bytes: 20_971_520,
      max_text_bytes: 1_048_576,
      max_count: 10,
    },
    max_body_bytes: 67_108_864,
  });
});

test("/api/info says how large a message may be, as PARLEY_MAX_BODY_BYTES sets it", async (t) => {
  const server = await startServer(t, { turns: [], env: { PARLEY_MAX_BODY_BYTES: "1000000" } });
  assert.equal((await read(`${server.url}/api/info`)).max_body_bytes, 1_000_000);
});

test("/api/info of the smallest agent: its name stands for both, and there is no welcome", async (t) => {
  const server = await startServer(t, { turns: [], agent: { name: "Solo" } });
  const { name, agent, welcome, suggestions } = await read(`${server.url}/api/info`);
  assert.deepEqual([name, agent, welcome, suggestions], ["Solo", "Solo", undefined, []]);
});

test("instructions, model and tools are in no open answer", async (t) => {
  const agent = { instructions: "the secret sauce" };
  const server = await startServer(t, { turns: [], agent });
  for (const path of ["/", "/api/info", "/openapi.json", "/health", "/health/ready"]) {
    const text = await (await fetch(server.url + path)).text();
    assert.doesNotMatch(text, /secret sauce|scripted/, path);
  }
});

test("a message to an address where nothing is learns where the chat is", async (t) => {
  const server = await startServer(t, { turns: [] });
  for (const [path, why] of [
    ["/v1/chat/completions", "Nothing is served here unless PARLEY_OPENAI_API is on."],
    ["/mcp", "Nothing is served here unless PARLEY_MCP is on."],
    ["/chat", "There is nothing at this address."],
  ]) {
    const answer = await fetch(server.url + path, { method: "POST", body: "{}" });
    assert.equal(answer.status, 404);
    assert.equal(JSON.parse(await answer.text()).error.message, `${why} The chat is POST /api/chat.`);
  }
  assert.doesNotMatch(await (await fetch(`${server.url}/favicon.ico`)).text(), /POST/);
});

const PATHS = ["/", "/api/info", "/health", "/health/ready", "/widget.js", "/nowhere", "/ws/chat"];

test("every answer has nosniff, no-referrer, and a request id of its own", async (t) => {
  const server = await startServer(t, { turns: [[say("Fine")], [say("Fine")]] });
  const answers = [
    ...(await Promise.all(PATHS.map((path) => fetch(server.url + path)))),
    await post(server, { message: "Hi", stream: false }),
    await post(server, { message: "Hi", stream: true }),
    await post(server, {}),
  ];
  const ids = answers.map(({ headers }) => {
    assert.equal(headers.get("x-content-type-options"), "nosniff");
    assert.equal(headers.get("referrer-policy"), "no-referrer");
    return headers.get("x-request-id") ?? "";
  });
  assert.equal(new Set(ids).size, answers.length);
  for (const id of ids) assert.match(id, /^[\w-]{8,}$/);
});

for (const [name, given, kept] of [
  ["a plain one", "abc-123", "abc-123"],
  ["one of 128 characters", "x".repeat(128), "x".repeat(128)],
  ["a longer one, up to 128 characters", "y".repeat(500), "y".repeat(128)],
] as const) {
  test(`an incoming x-request-id is kept: ${name}`, async (t) => {
    const server = await startServer(t, { turns: [[say("Fine")]] });
    const headers = { "x-request-id": given };
    for (const answer of [
      await post(server, { message: "Hi", stream: false }, { headers }),
      await post(server, {}, { headers }),
      await fetch(`${server.url}/health`, { headers }),
    ]) {
      assert.equal(answer.headers.get("x-request-id"), kept);
    }
  });
}

test("an x-request-id that could write into a log is replaced", async (t) => {
  const server = await startServer(t, { turns: [] });
  for (const id of ["two words", "", "caf\xe9", "\x1b[31m"]) {
    const raw = await connectRaw(t, server);
    await raw.write("GET /health HTTP/1.1", "host: x", `x-request-id: ${id}`, "", "");
    const answer = await raw.answer();
    assert.notEqual(answer.headers.get("x-request-id") ?? id, id);
  }
});

test("an offer to change to HTTP/2 is ignored, as clients of several languages make it", async (t) => {
  const { raw } = await startWithRaw(t, { turns: [[say("Fine")], [say("Fine")]] });
  const offer = ["connection: Upgrade, HTTP2-Settings", "upgrade: h2c", "http2-settings: AAMAAABk"];
  for (let round = 0; round < 2; round++) {
    await raw.write("GET /health HTTP/1.1", "host: x", ...offer, "", "");
    assert.equal((await raw.answer()).status, 200);
    await raw.write(...chatRequest({ message: "Hi", stream: false }, ...offer));
    const answer = await raw.answer();
    assert.equal(answer.status, 200);
    assert.match(answer.body, /Fine/);
  }
});

test("a request that does not arrive in time is 408 request_timeout", async (t) => {
  const env = { PARLEY_BODY_SECONDS: "0.02", PARLEY_HEADER_SECONDS: "0.02" };
  const { raw } = await startWithRaw(t, { turns: [], env });
  await raw.write(...CHAT_HEAD, "content-length: 5", "", "ab");
  const answer = await raw.answer();
  assert.deepEqual([answer.status, JSON.parse(answer.body).error.code], [408, "request_timeout"]);
  assert.ok(answer.headers.get("x-request-id"));
  await raw.closed;
});
