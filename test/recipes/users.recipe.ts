/** The recipes of docs/users.md that need packages, which npm run test:recipes installs. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, type TestContext, test } from "node:test";
import { pathToFileURL } from "node:url";
import { post } from "../support/chat-transports.ts";
import { REPOSITORY, start } from "../support/command.ts";
import { listen } from "../support/listen.ts";
import { codeBlocks, readMarkdown } from "../support/markdown-file.ts";
import { say } from "../support/scripted-provider.ts";
import { connect } from "../support/socket-client.ts";
import { type Cleanup, startServer } from "../support/start-server.ts";
import { temporaryProject } from "../support/temporary-project.ts";
import { twice } from "../support/twice.ts";
import { compileAgents } from "./compile.ts";

const RECIPES = codeBlocks(readMarkdown("docs/users.md")).filter(
  ({ language, text }) => language === "ts" && /from "(?:jose|express-session)"/.test(text),
);

/** The recipe that contains this text. */
function recipe(has: string): string {
  return RECIPES.find(({ text }) => text.includes(has))?.text ?? assert.fail(`docs/users.md has no recipe with ${has}`);
}

const AGENT = `
  import { defineAgent, tool } from "parley-agent";
  const who = { name: "who_am_i", description: "Who asks.", parameters: { type: "object" } } as const;
  const whoAmI = tool({ ...who, execute: (_args, { user }) => String(user?.id) });
  export default defineAgent({ name: "A", model: "demo", tools: [whoAmI] });`;

const folder = temporaryProject({ after } as Cleanup, {
  "hs256/agent.ts": recipe("JWT_SECRET)") + AGENT,
  "jwks/agent.ts": recipe("createRemoteJWKSet") + AGENT,
  "webui/agent.ts": recipe("x-openwebui") + AGENT,
  "express/agent.ts": recipe("express-session") + AGENT,
});
// Without the packages of docs/hooks.md, which are ten times as large. The versions are those of the lock file.
const { dependencies, ...rest } = JSON.parse(readMarkdown("test/recipes/package.json"));
const needed = Object.entries(dependencies).filter(([name]) => /express|jose/.test(name));
writeFileSync(join(folder, "package.json"), JSON.stringify({ ...rest, dependencies: Object.fromEntries(needed) }));
cpSync("test/recipes/package-lock.json", join(folder, "package-lock.json"));
await twice(() => execFileSync("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: folder }));
symlinkSync(REPOSITORY, join(folder, "node_modules/parley-agent"));

const installed = createRequire(join(folder, "package.json"));
const jose = await import(pathToFileURL(installed.resolve("jose")).href);

/** The answer of the agent's tool, or the error code. */
async function whoAmI(url: string, headers: Record<string, string>): Promise<string> {
  const answer = await post({ url }, { message: "call all tools", stream: false }, { headers });
  const { error, tool_calls: calls } = JSON.parse(await answer.text());
  return error?.code ?? calls[0].output;
}

const SECRET = "a secret of 32 bytes for a test!";

/** A token with these claims, which expires in a minute unless they say otherwise. */
function sign(claims: object, { key = new TextEncoder().encode(SECRET) as unknown, alg = "HS256", seconds = 60 } = {}) {
  const exp = Math.floor(Date.now() / 1000) + seconds;
  return new jose.SignJWT({ exp, ...claims }).setProtectedHeader({ alg, kid: "1" }).sign(key) as Promise<string>;
}

const base64url = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
const UNSIGNED = `${base64url({ alg: "none" })}.${base64url({ sub: "ada", iss: "open-webui", exp: 4e9 })}.`;
const FOREIGN = new TextEncoder().encode("another secret of 32 bytes here!");

for (const [name, project, variable, header, iss] of [
  ["a JWT of one's own server", "hs256", "JWT_SECRET", "x-user-token", undefined],
  ["Open WebUI's signed header", "webui", "FORWARD_USER_INFO_HEADER_JWT_SECRET", "x-openwebui-user-jwt", "open-webui"],
] as const) {
  test(`${name} says who is asking, and one that is forged, expired or missing says nothing`, async (t) => {
    const { url } = await start(t, [join(folder, project)], { env: { [variable]: SECRET } });
    const claims = { sub: "ada", ...(iss && { iss }) };
    const ask = async (token: string) => whoAmI(url, { [header]: token });
    assert.equal(await ask(await sign(claims)), "ada");
    const refused = [
      await sign(claims, { key: FOREIGN }),
      await sign(claims, { seconds: -60 }),
      await sign({ ...claims, sub: undefined }),
      await sign({ ...claims, exp: undefined }),
      UNSIGNED,
      "nonsense",
    ];
    for (const token of refused) assert.equal(await ask(token), "login_required", token);
    assert.equal(await whoAmI(url, { "x-openwebui-user-id": "ada" }), "login_required");
  });
}

test("a JWT of an identity provider says who is asking; without its keys nobody has to sign in again", async (t) => {
  const { publicKey, privateKey } = await jose.generateKeyPair("RS256");
  const other = await jose.generateKeyPair("RS256");
  const former = await jose.generateKeyPair("RS256");
  const published = [publicKey, former.publicKey].map(async (key, index) => {
    return { ...(await jose.exportJWK(key)), kid: String(index + 1), alg: "RS256" };
  });
  const keys = { keys: await Promise.all(published) };
  let isAway = false;
  const issuer = await listen(
    t,
    createServer((req, res) => {
      const isKnown = req.url === "/.well-known/jwks.json" && !isAway;
      res.writeHead(isKnown ? 200 : 503, { "content-type": "application/json" }).end(JSON.stringify(keys));
    }),
  );
  const claims = { sub: "ada", iss: issuer, aud: "acme-chat" };
  const own = { key: privateKey, alg: "RS256" };
  const { url } = await start(t, [join(folder, "jwks")], { env: { ISSUER: issuer } });
  const ask = async (more: object, how: object = {}) =>
    whoAmI(url, { "x-user-token": await sign({ ...claims, ...more }, { ...own, ...how }) });
  assert.equal(await ask({}), "ada");
  for (const more of [{ aud: "another" }, { iss: "https://evil.example" }, { exp: 1 }]) {
    assert.equal(await ask(more), "login_required");
  }
  assert.equal(await ask({}, { key: other.privateKey }), "login_required");
  // Algorithms that the provider's keys are not for, such as HS256 with a public key as the secret.
  for (const header of [{ alg: "none" }, { alg: "HS256", kid: "1" }, { alg: "RS256", kid: "1", crit: ["x"], x: 1 }]) {
    const forged = `${base64url(header)}.${base64url({ ...claims, exp: 4e9 })}.AAAA`;
    assert.equal(await whoAmI(url, { "x-user-token": forged }), "login_required");
  }
  const unnamed = await new jose.SignJWT({ ...claims, exp: 4e9 }).setProtectedHeader({ alg: "RS256" }).sign(privateKey);
  assert.equal(await whoAmI(url, { "x-user-token": unnamed }), "login_required");
  isAway = true;
  const { url: late } = await start(t, [join(folder, "jwks")], { env: { ISSUER: issuer } });
  assert.equal(await whoAmI(late, { "x-user-token": await sign(claims, own) }), "internal");
});

test("a session of Express says who is asking over HTTP and WebSocket until it ends, and not for a page of another site", async (t) => {
  process.env.SESSION_SECRET = SECRET;
  const { authenticate, sessions } = await import(pathToFileURL(join(folder, "express/agent.ts")).href);
  const env = { PARLEY_ALLOWED_ORIGINS: "*" };
  const agent = { instructions: ({ user }: { user: { id: string } | undefined }) => `For ${user?.id}.` };
  const turns = Array.from({ length: 4 }, () => [say("Fine")]);
  const parley = await startServer(t, { authenticate, env, turns, agent });
  const app = installed("express")();
  app.use(sessions);
  interface SessionRequest {
    session: { userId: string; destroy(then: () => void): void };
  }
  app.post("/login", (req: SessionRequest, res: { end(): void }) => {
    req.session.userId = "ada";
    res.end();
  });
  app.post("/logout", (req: SessionRequest, res: { end(): void }) => req.session.destroy(() => res.end()));
  const { handler } = parley.server;
  app.use(((req, res) => handler.request(req, res)) satisfies RequestListener);
  const site = createServer(app);
  site.on("upgrade", (req, socket, head) =>
    handler.upgrade(req, socket as Parameters<typeof handler.upgrade>[1], head),
  );
  const url = await listen(t, site);
  const cookie = (await fetch(`${url}/login`, { method: "POST" })).headers.get("set-cookie")?.split(";")[0] ?? "";
  await asksAs(t, url, { cookie, origin: url }, ["done", "done"]);
  const open = await connect(t, `${url.replace("http", "ws")}/ws/chat`, { headers: { cookie, origin: url } });
  await open.run({ message: "Hi" });
  assert.deepEqual(
    parley.model.asked.map(({ start: { setup } }) => setup.instructions),
    ["For ada.", "For ada.", "For ada."],
  );
  for (const headers of [{ cookie, origin: "https://evil.example" }, { origin: url }, {}]) {
    await asksAs(t, url, headers, ["login_required", "login_required"]);
  }
  await fetch(`${url}/logout`, { method: "POST", headers: { cookie } });
  const last = (await open.run({ message: "Hi" })).at(-1);
  assert.equal(last?.type === "error" && last.code, "login_required");
});

async function asksAs(t: TestContext, url: string, headers: Record<string, string>, ends: string[]): Promise<void> {
  const answer = JSON.parse(await (await post({ url }, { message: "Hi", stream: false }, { headers })).text());
  const client = await connect(t, `${url.replace("http", "ws")}/ws/chat`, { headers });
  const last = (await client.run({ message: "Hi" })).at(-1);
  assert.deepEqual([answer.error?.code ?? "done", last?.type === "error" ? last.code : last?.type], ends);
}

test("the recipes compile", () => compileAgents(folder));
