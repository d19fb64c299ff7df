/** The servers of docs/embedding.md, with their packages, which npm run test:recipes installs. */

import assert from "node:assert/strict";
import { execFileSync, fork } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { after, type TestContext, test } from "node:test";
import { WebSocket } from "ws";
import { post, send, TRANSPORTS } from "../support/chat-transports.ts";
import { REPOSITORY } from "../support/command.ts";
import { PROCESS_MS, within } from "../support/deadline.ts";
import { codeBlocks, readMarkdown } from "../support/markdown-file.ts";
import { connect } from "../support/socket-client.ts";
import type { Cleanup } from "../support/start-server.ts";
import { temporaryProject } from "../support/temporary-project.ts";
import { twice } from "../support/twice.ts";

const BLOCKS = codeBlocks(readMarkdown("docs/embedding.md")).filter(({ language }) => language === "js");

/** The block with this name in its first line. */
function block(name: string): string {
  const found = BLOCKS.find(({ text }) => text.startsWith(`// ${name}\n`));
  return found?.text ?? assert.fail(`docs/embedding.md has no block "${name}"`);
}

/** A middleware that reads the body, and one that allows every origin, both before Parley. */
const careless = block("server.js, with Express").replace(
  "app.use(sessions);",
  `app.use((await import("cors")).default({ origin: true, credentials: true }));
   app.use("/support/api/chat", (req, res, next) => (req.headers["x-parsed"] ? express.json()(req, res, next) : next()));
   app.use(sessions);`,
);

const folder = temporaryProject({ after } as Cleanup, {
  "agent.js": block("agent.js"),
  "http.js": block("server.js, with node:http"),
  "sockets.js": block("server.js, with sockets of its own"),
  "express.js": block("server.js, with Express"),
  "careless.js": careless,
  "fastify.js": block("server.js, with Fastify"),
  "next.js": block("server.js, with Next"),
  "two.js": block("server.js, with two agents"),
  "app/layout.jsx": 'export default ({ children }) => <html lang="en"><body>{children}</body></html>;',
  "app/page.jsx": "export default () => <main>The rest of the site</main>;",
  // Reports the port once the server listens.
  "report.cjs": `
    const { Server } = require("node:net");
    const { listen } = Server.prototype;
    Server.prototype.listen = function (...args) {
      this.once("listening", () => process.send?.(this.address().port));
      return listen.apply(this, args);
    };`,
});
for (const name of ["package.json", "package-lock.json"])
  cpSync(join("test/recipes/embedding", name), join(folder, name));
await twice(() => execFileSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: folder }));
// As npm installs it, because Next follows no links out of its folder.
mkdirSync(join(folder, "node_modules/parley-agent"));
cpSync(join(REPOSITORY, "package.json"), join(folder, "node_modules/parley-agent/package.json"));
cpSync(join(REPOSITORY, "dist"), join(folder, "node_modules/parley-agent/dist"), { recursive: true });
for (const name of ["jiti", "ws"])
  symlinkSync(join(REPOSITORY, "node_modules", name), join(folder, "node_modules", name));

/** Starts a server of the document in a separate process. */
async function start(t: TestContext, file: string) {
  const { PATH = "" } = process.env;
  const env = { PATH, PORT: "0", SESSION_SECRET: "a secret", PARLEY_LOG: "off", NEXT_TELEMETRY_DISABLED: "1" };
  const execArgv = ["--require", join(folder, "report.cjs")];
  const child = fork(join(folder, file), { cwd: folder, env, execArgv, silent: true });
  t.after(() => child.kill("SIGKILL"));
  let said = "";
  child.stderr?.on("data", (text) => {
    said += text;
  });
  const ended = once(child, "exit");
  const [port] = await within(
    Promise.race([once(child, "message"), ended.then(() => assert.fail(said))]),
    "the start",
    PROCESS_MS,
  );
  const at = (path: string) => ({
    url: `http://127.0.0.1:${port}${path}`,
    socketUrl: `ws://127.0.0.1:${port}${path}/ws/chat`,
  });
  return {
    ...at(""),
    at,
    /** Stops the server; returns its exit code. */
    async stop(): Promise<number> {
      child.disconnect();
      child.kill("SIGTERM");
      return (await within(ended, "the end", PROCESS_MS))[0];
    },
  };
}

for (const [name, file, paths] of [
  ["node:http", "http.js", ["/support"]],
  ["node:http with sockets of its own", "sockets.js", ["/support"]],
  ["Fastify", "fastify.js", ["/support"]],
  ["Next", "next.js", ["/support"]],
  ["two agents", "two.js", ["/sales", "/help"]],
] as const) {
  test(`${name}: the site and its chat answer side by side, and both end`, async (t) => {
    const server = await start(t, file);
    assert.match(await (await fetch(`${server.url}/`)).text(), /The rest of the site/);
    for (const path of paths) {
      const page = await fetch(server.url + path);
      assert.equal(page.url, `${server.url}${path}/`);
      assert.match(await page.text(), /<agent-chat page/);
      assert.equal((await fetch(`${server.url}${path}/widget.js`)).status, 200);
      for (const transport of TRANSPORTS) {
        assert.equal((await send[transport](t, server.at(path), { message: "Hi" })).last.type, "done", transport);
      }
    }
    const socketOf = (path: string) => new WebSocket(server.url.replace("http", "ws") + path);
    await within(once(socketOf("/own"), "error"), "the end of a socket that is not Parley's");
    if (file === "sockets.js")
      assert.equal(`${await within(once(socketOf("/live"), "message"), "Welcome")}`, "Welcome,false");
    const idle = await connect(t, server.at(paths[0]).socketUrl);
    assert.equal(await server.stop(), 0);
    assert.equal((await idle.closed).code, 1001);
  });
}

test("Express: a session says who is asking over HTTP and WebSocket until it ends, and both end", async (t) => {
  const server = await start(t, "express.js");
  assert.equal(await (await fetch(`${server.url}/`)).text(), "The rest of the site");
  const answer = await fetch(`${server.url}/login`, { method: "POST" });
  const cookie = answer.headers.get("set-cookie")?.split(";")[0] ?? "";
  await asks(t, server.at("/support"), { cookie, origin: server.url }, ["done", "done"]);
  const open = await connect(t, server.at("/support").socketUrl, { headers: { cookie, origin: server.url } });
  assert.equal((await open.run({ message: "Hi" })).at(-1)?.type, "done");
  await fetch(`${server.url}/logout`, { method: "POST", headers: { cookie } });
  const last = (await open.run({ message: "Hi" })).at(-1);
  assert.equal(last?.type === "error" && last.code, "login_required");
  await asks(t, server.at("/support"), { origin: server.url }, ["login_required", "login_required"]);
  assert.equal((await fetch(`${server.url}/support`)).url, `${server.url}/support/`);
  assert.equal(await server.stop(), 0);
});

test("Express: neither cors() nor express.json() before Parley opens it, and the answer says what is wrong", async (t) => {
  const server = await start(t, "careless.js");
  const answer = await fetch(`${server.url}/login`, { method: "POST" });
  const cookie = answer.headers.get("set-cookie")?.split(";")[0] ?? "";
  const foreign = await post(
    server.at("/support"),
    { message: "Hi" },
    { headers: { cookie, origin: "https://evil.example" } },
  );
  assert.equal(foreign.status, 403);
  for (const name of ["origin", "credentials"]) assert.equal(foreign.headers.get(`access-control-allow-${name}`), null);
  const parsed = await post(server.at("/support"), { message: "Hi" }, { headers: { cookie, "x-parsed": "yes" } });
  assert.match(JSON.parse(await parsed.text()).error.message, /call parley\.handle before express\.json\(\)/);
});

/** Sends a message over JSON and WebSocket, and compares how both end. */
async function asks(
  t: TestContext,
  { url, socketUrl }: { url: string; socketUrl: string },
  headers: Record<string, string>,
  ends: string[],
): Promise<void> {
  const answer = JSON.parse(await (await post({ url }, { message: "Hi", stream: false }, { headers })).text());
  const client = await connect(t, socketUrl, { headers });
  const last = (await client.run({ message: "Hi" })).at(-1);
  assert.deepEqual([answer.error?.code ?? "done", last?.type === "error" ? last.code : last?.type], ends);
  client.socket.close();
}
