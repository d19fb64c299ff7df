/** The chat page and the widget as browsers and proxies get them. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { DIST } from "../support/command.ts";
import { connectRaw } from "../support/raw-connection.ts";
import { startServer, type TestServer } from "../support/start-server.ts";

const CHUNKS = join(DIST, "public/chunks");

const DECODE = {
  br: brotliDecompressSync,
  gzip: gunzipSync,
  identity: (bytes: Buffer) => bytes,
} as const;

/** Asks without the client's own decoding. */
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
