/** Tokens of a client of the server's own: OAuth's client credentials, from an address that is named, or that the server names. */

import assert from "node:assert/strict";
import { createServer, type IncomingMessage } from "node:http";
import { type TestContext, test } from "node:test";
import { listen } from "../support/listen.ts";
import { calling, outputOf, saidOf, startWith } from "./asking.ts";
import { startHttpServer, textResult, toolNamed } from "./http-server.ts";

const SECRET = "secret & more";

async function bodyOf(req: IncomingMessage): Promise<URLSearchParams> {
  let body = "";
  for await (const chunk of req.setEncoding("utf8")) body += chunk;
  return new URLSearchParams(body);
}

/** Who gives tokens, and an MCP server that takes the newest alone. */
async function startBoth(t: TestContext, status = 200) {
  const asked: { basic: string; body: URLSearchParams; tools: unknown }[] = [];
  const issuer = createServer(async (req, res) => {
    const json = (value: object) => res.setHeader("content-type", "application/json").end(JSON.stringify(value));
    const origin = `http://${req.headers.host}`;
    if (req.url?.startsWith("/.well-known/")) {
      return json({
        issuer: origin,
        authorization_endpoint: `${origin}/authorize`,
        token_endpoint: `${origin}/token`,
        response_types_supported: ["code"],
        grant_types_supported: ["client_credentials"],
        token_endpoint_auth_methods_supported: ["client_secret_basic"],
      });
    }
    const [, encoded = ""] = (req.headers.authorization ?? "").split(" ");
    const basic = Buffer.from(encoded, "base64").toString();
    asked.push({ basic, body: await bodyOf(req), tools: req.headers["x-tools"] });
    res.statusCode = status;
    return json({ access_token: `token${asked.length}`, token_type: "Bearer", expires_in: 3600 });
  });
  const issuerUrl = await listen(t, issuer);
  let revoked = 0;
  const tools = await startHttpServer(t, {
    tools: [toolNamed("who")],
    call: ({ headers }) => textResult(String(headers.authorization)),
    instead({ headers, method }, res) {
      const { pathname } = new URL(res.req.url ?? "", tools.url);
      if (method === "GET" && pathname.startsWith("/.well-known/oauth-protected-resource")) {
        const metadata = { resource: tools.url, authorization_servers: [issuerUrl] };
        res.setHeader("content-type", "application/json").end(JSON.stringify(metadata));
        return true;
      }
      if (headers.authorization === `Bearer token${asked.length}` && asked.length > revoked) return false;
      res.writeHead(401, { "www-authenticate": "Bearer" }).end();
      return true;
    },
  });
  const revoke = () => {
    revoked = asked.length;
  };
  return { tools, issuerUrl, asked, revoke };
}

for (const isNamed of [true, false]) {
  const who = isNamed ? "the named address" : "whom the server names";
  test(`a token comes from ${who}, is used until it is refused, and then another`, async (t) => {
    const { tools, issuerUrl, asked, revoke } = await startBoth(t);
    const auth = {
      clientId: "me",
      clientSecret: SECRET,
      ...(isNamed && { tokenUrl: `${issuerUrl}/token`, scope: "read" }),
    };
    const definition = { url: tools.url, auth, headers: { "x-tools": "for the tool server alone" } };
    const server = await startWith(t, { own: definition }, { turns: calling(3, "own__who") });
    assert.equal(await outputOf(t, server), "Bearer token1");
    assert.equal(await outputOf(t, server), "Bearer token1");
    revoke();
    assert.equal(await outputOf(t, server), "Bearer token2");
    assert.deepEqual(
      asked.map(({ basic, body, tools: own }) => [decodeURIComponent(basic), body.get("grant_type"), own]),
      [
        [`me:${SECRET}`, "client_credentials", undefined],
        [`me:${SECRET}`, "client_credentials", undefined],
      ],
    );
    if (isNamed) assert.equal(asked[0]?.body.get("scope"), "read");
  });
}

test("without a token the agent answers, and the log says why, without the secret", async (t) => {
  const { tools, issuerUrl } = await startBoth(t, 400);
  const auth = { clientId: "me", clientSecret: SECRET, tokenUrl: `${issuerUrl}/token` };
  const server = await startWith(t, { own: { url: tools.url, auth } }, { turns: calling(1, "own__who") });
  assert.match(await outputOf(t, server), /no tool/i);
  assert.match(saidOf(server).join("\n"), /gave no token, but the status 400/);
  assert.doesNotMatch(server.log.join("\n"), /secret & more/);
});
