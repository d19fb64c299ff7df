/** OAuth client credentials of the server itself, from a configured address or one that the MCP server names. */

import assert from "node:assert/strict";
import { createServer, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { listen } from "../support/listen.ts";
import { calling, outputOf, saidOf, startWith } from "./asking.ts";
import { type Asked, startHttpServer, textResult, toolNamed } from "./http-server.ts";

const SECRET = "secret & more";

interface TokenRequest {
  readonly basic: string;
  readonly body: URLSearchParams;
  readonly tools: unknown;
}

type Request = Pick<Asked, "headers" | "body">;

/** Issues tokens, numbered from 1, and serves the issuer's metadata. */
function giving(status: number) {
  const asked: TokenRequest[] = [];
  const answer = ({ headers, body }: Request, res: ServerResponse) => {
    const json = (value: object) => res.setHeader("content-type", "application/json").end(JSON.stringify(value));
    const origin = `http://${headers.host}`;
    if (res.req.url?.startsWith("/.well-known/")) {
      return json({
        issuer: origin,
        authorization_endpoint: `${origin}/authorize`,
        token_endpoint: `${origin}/token`,
        response_types_supported: ["code"],
        grant_types_supported: ["client_credentials"],
        token_endpoint_auth_methods_supported: ["client_secret_basic"],
      });
    }
    const [, encoded = ""] = (headers.authorization ?? "").split(" ");
    const basic = decodeURIComponent(Buffer.from(encoded, "base64").toString());
    asked.push({ basic, body: new URLSearchParams(body), tools: headers["x-tools"] });
    res.statusCode = status;
    return json({ access_token: `token${asked.length}`, token_type: "Bearer", expires_in: 3600 });
  };
  return { asked, answer };
}

/** An MCP server that accepts only the newest token, issues tokens itself, and names another issuer or itself. */
async function startBoth(t: TestContext, { status = 200, namesOther = true } = {}) {
  const { asked, answer } = giving(status);
  const issuer = createServer(async (req, res) => answer({ headers: req.headers, body: await text(req) }, res));
  const issuerUrl = await listen(t, issuer);
  let revoked = 0;
  const tools = await startHttpServer(t, {
    tools: [toolNamed("who")],
    call: ({ headers }) => textResult(String(headers.authorization)),
    instead(request, res) {
      const { pathname, origin } = new URL(res.req.url ?? "", tools.url);
      if (pathname.startsWith("/.well-known/oauth-protected-resource")) {
        const metadata = { resource: tools.url, authorization_servers: [namesOther ? issuerUrl : origin] };
        res.setHeader("content-type", "application/json").end(JSON.stringify(metadata));
        return true;
      }
      if (pathname !== "/mcp") return Boolean(answer(request, res));
      const isNewest = request.headers.authorization === `Bearer token${asked.length}`;
      if (isNewest && asked.length > revoked) return false;
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
  const place = isNamed ? "the address that the author names" : "the server's own origin";
  test(`a token comes from ${place}, is used until it is refused, and then another`, async (t) => {
    const { tools, issuerUrl, asked, revoke } = await startBoth(t, { namesOther: isNamed });
    const auth = {
      clientId: "me",
      clientSecret: SECRET,
      scope: "read",
      ...(isNamed && { tokenUrl: `${issuerUrl}/token` }),
    };
    const definition = { url: tools.url, auth, headers: { "x-tools": "for the tool server alone" } };
    const server = await startWith(t, { own: definition }, { turns: calling(3, "own__who") });
    assert.equal(await outputOf(t, server), "Bearer token1");
    assert.equal(await outputOf(t, server), "Bearer token1");
    revoke();
    assert.equal(await outputOf(t, server), "Bearer token2");
    const requests = asked.map(({ basic, body, tools: own }) => [
      basic,
      body.get("grant_type"),
      body.get("scope"),
      own,
    ]);
    const one = [`me:${SECRET}`, "client_credentials", "read", undefined];
    assert.deepEqual(requests, [one, one]);
  });
}

test("a secret does not go to another origin that the server names, and the log says why there are no tools", async (t) => {
  const { tools, asked } = await startBoth(t);
  const auth = { clientId: "me", clientSecret: SECRET };
  const server = await startWith(t, { own: { url: tools.url, auth } }, { turns: calling(1, "own__who") });
  assert.match(await outputOf(t, server), /no tool/i);
  assert.match(
    saidOf(server).join("\n"),
    /The tool server own cannot be reached\. .*refusing to present them to a different authorization server/,
  );
  assert.deepEqual(asked, []);
});

test("without a token the agent answers, and the log says why, without the secret", async (t) => {
  const { tools, issuerUrl } = await startBoth(t, { status: 400 });
  const auth = { clientId: "me", clientSecret: SECRET, tokenUrl: `${issuerUrl}/token` };
  const server = await startWith(t, { own: { url: tools.url, auth } }, { turns: calling(1, "own__who") });
  assert.match(await outputOf(t, server), /no tool/i);
  assert.match(saidOf(server).join("\n"), /gave no token, but the status 400/);
  assert.doesNotMatch(server.log.join("\n"), /secret & more|token1/);
});
