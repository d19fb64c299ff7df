/** `createParley`: agents mounted on a server that is not ours. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import { type AddressInfo, createConnection, type Socket } from "node:net";
import { join } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { WebSocketServer } from "ws";
import { createParley, type Parley, type ParleyOptions } from "../../server/mount.ts";
import type { ToolContext } from "../../server/parley-agent.ts";
import { post, send, TRANSPORTS } from "../support/chat-transports.ts";
import { DIST } from "../support/command.ts";
import { gate, turns, within } from "../support/deadline.ts";
import { listen } from "../support/listen.ts";
import { connectByPsk, createPskServer } from "../support/psk.ts";
import { chatRequest, connectRaw, RawConnection, upgrade } from "../support/raw-connection.ts";
import { refused } from "../support/refused.ts";
import { openLine } from "../support/run-lines.ts";
import { connect } from "../support/socket-client.ts";
import type { Cleanup } from "../support/start-server.ts";
import { temporaryProject } from "../support/temporary-project.ts";
import { eventStream } from "../support/upstream-server.ts";

/** A model API that calls the agent's tool if there is one, and otherwise says "ok". */
const model = createServer(async (req, res) => {
  const asked = Buffer.concat(await req.toArray()).toString();
  const call = { index: 0, id: "1", function: { name: "look", arguments: "{}" } };
  const hasToCall = asked.includes('"tools"') && !asked.includes('"role":"tool"');
  const choice = hasToCall
    ? { index: 0, delta: { tool_calls: [call] }, finish_reason: "tool_calls" }
    : { index: 0, delta: { content: "ok" }, finish_reason: "stop" };
  res.setHeader("content-type", "text/event-stream").end(eventStream({ choices: [choice] }, "[DONE]"));
});
const COMPATIBLE_BASE_URL = await listen({ after } as Cleanup, model);

const AGENT = { name: "Acme Support", model: "compatible/test" };

async function mount(t: Cleanup, { settings, ...options }: Partial<ParleyOptions> = {}): Promise<Parley> {
  const quiet = { PARLEY_LOG: "off", PARLEY_DRAIN_SECONDS: "0", COMPATIBLE_BASE_URL };
  const parley = await createParley({ agent: AGENT, ...options, settings: { ...quiet, ...settings } });
  t.after(() => parley.close());
  return parley;
}

/** Starts a host's server. `address` is where it listens; a string is the path of a Unix socket. */
async function startHost(t: Cleanup, host: Server, address: { port: number; host: string } | string) {
  host.listen(address);
  await once(host, "listening");
  t.after(() => {
    host.close();
    host.closeAllConnections();
  });
  return host;
}

async function startOnPort(t: Cleanup, host: Server) {
  await startHost(t, host, { port: 0, host: "127.0.0.1" });
  const { port } = host.address() as AddressInfo;
  const at = (path: string) => ({
    url: `http://127.0.0.1:${port}${path}`,
    socketUrl: `ws://127.0.0.1:${port}${path}/ws/chat`,
  });
  return { ...at(""), port, at };
}

/** A plain Node server, as in the documentation of `createParley`. */
async function startBare(t: Cleanup, options: Partial<ParleyOptions> = {}) {
  const parley = await mount(t, options);
  return { parley, ...(await startOnPort(t, createServer(parley.handle).on("upgrade", parley.upgrade))) };
}

/** Starts a server for `parley`; returns a function that connects to it. */
type Entrance = (t: Cleanup, parley: Parley) => Promise<() => Socket>;

const ENTRANCES: Readonly<Record<string, Entrance>> = {
  async TCP(t, { handle, upgrade }) {
    const { port } = await startOnPort(t, createServer(handle).on("upgrade", upgrade));
    return () => createConnection(port, "127.0.0.1");
  },
  async TLS(t, { handle, upgrade }) {
    const { port } = await startOnPort(t, createPskServer().on("request", handle).on("upgrade", upgrade));
    return () => connectByPsk(port);
  },
  async "a Unix socket"(t, { handle, upgrade }) {
    const path = join(temporaryProject(t, {}), "socket");
    await startHost(t, createServer(handle).on("upgrade", upgrade), path);
    return () => createConnection(path);
  },
};

for (const [name, enter] of Object.entries(ENTRANCES)) {
  for (const basePath of ["", "/team/support"]) {
    test(`over ${name}, ${basePath || "at the root"}, a mounted agent answers JSON, event streams, WebSockets and offers of HTTP/2`, async (t) => {
      const dial = await enter(t, await mount(t, { basePath }));
      const raw = new RawConnection(dial());
      t.after(() => raw.socket.destroy());
      const request = (message: object, ...headers: string[]) => {
        const [, ...rest] = chatRequest(message, ...headers);
        return raw.write(`POST ${basePath}/api/chat HTTP/1.1`, ...rest);
      };
      await request({ message: "Hi", stream: false });
      assert.match((await raw.answer()).body, /"done":true/);
      await request({ message: "Hi", stream: false }, "connection: Upgrade, HTTP2-Settings", "upgrade: h2c");
      assert.match((await raw.answer()).body, /"done":true/);
      await request({ message: "Hi", stream: true });
      await raw.until("event: done");
      const client = await connect(t, `ws://127.0.0.1${basePath}/ws/chat`, { createConnection: dial });
      assert.equal((await client.run({ message: "Hi" })).at(-1)?.type, "done");
    });
  }
}

test("over TLS, a page of the same name without TLS is another site: its cookies do not reach authenticate", async (t) => {
  const seen: unknown[] = [];
  const parley = await mount(t, { authenticate: ({ headers }) => void seen.push(headers.cookie) });
  const { port } = await startOnPort(t, createPskServer().on("request", parley.handle));
  for (const scheme of ["https", "http"]) {
    const raw = new RawConnection(connectByPsk(port));
    t.after(() => raw.socket.destroy());
    const [first = "", , ...rest] = chatRequest(
      { message: "Hi", stream: false },
      `origin: ${scheme}://localhost`,
      "cookie: a=1",
    );
    await raw.write(first, "host: localhost", ...rest);
    assert.equal((await raw.answer()).status, 200);
  }
  assert.deepEqual(seen, ["a=1", undefined]);
});

test("an offer of HTTP/2 whose body comes in pieces is answered, and one that breaks off ends only itself", async (t) => {
  const { port } = await startBare(t);
  for (const breaksOff of [true, false]) {
    const raw = new RawConnection(createConnection(port, "127.0.0.1"));
    t.after(() => raw.socket.destroy());
    const offer = ["connection: Upgrade, HTTP2-Settings", "upgrade: h2c"];
    const request = chatRequest({ message: "Hi", stream: true }, ...offer).join("\r\n");
    await raw.write(request.slice(0, -5));
    await raw.write(request.slice(-5));
    if (breaksOff) {
      await raw.until("event: token");
      raw.socket.resetAndDestroy();
    } else await raw.until("event: done");
  }
});

test("below a path the page, its scripts and the redirect are at their addresses, and there are no metrics", async (t) => {
  const { url } = await startBare(t, { basePath: "/support" });
  const statusOf = async (path: string) => (await fetch(url + path, { redirect: "manual" })).status;
  const page = await (await fetch(`${url}/support`)).text();
  const [, script] = /src="(chunks\/[^"]+)"/.exec(page) ?? assert.fail(page);
  for (const path of [`/support/${script}`, "/support/widget.js", "/support/?embed=1", "/support/health/ready"]) {
    assert.equal(await statusOf(path), 200, path);
  }
  for (const path of ["/health", "/health/ready"]) assert.equal(await statusOf(path), 200, path);
  for (const path of ["/", "/metrics", "/support/metrics", "/widget.js"]) assert.equal(await statusOf(path), 404, path);
  assert.equal(await statusOf("/support"), 308);
});

/** Requests that the host must handle, by the base path of Parley. */
const OF_THE_HOST = {
  "": ["GET /own", "POST /api/other", "GET /metrics", "GET /ws/other"],
  "/support": [
    "GET /",
    "GET /own",
    "GET /support/own",
    "GET /health",
    "GET /metrics",
    "POST /api/chat",
    "GET /supporting/",
  ],
};

for (const [basePath, requests] of Object.entries(OF_THE_HOST)) {
  test(`below "${basePath}" whatever is not Parley's goes to next, untouched`, async (t) => {
    const parley = await mount(t, { basePath });
    const host: RequestListener = async (req, res) => {
      const body = Buffer.concat(await req.toArray());
      res.end(`${req.method} ${req.url} ${body} ${res.getHeaderNames()}`);
    };
    const { url } = await startOnPort(
      t,
      createServer((req, res) => parley.handle(req, res, () => host(req, res))),
    );
    for (const request of requests) {
      const [method = "", path = ""] = request.split(" ");
      const body = method === "POST" ? "a body" : "";
      const answer = await fetch(url + path, { method, ...(body && { body }) });
      assert.equal(await answer.text(), `${request} ${body} `);
    }
    assert.equal((await fetch(`${url}${basePath}/api/chat`, { method: "DELETE" })).status, 405);
  });
}

test("an upgrade that is not Parley's is left alone, for the host's own WebSockets", async (t) => {
  const parley = await mount(t, { basePath: "/support" });
  const own = new WebSocketServer({ noServer: true });
  const taken: boolean[] = [];
  const host = createServer(parley.handle).on("upgrade", (req, socket, head) => {
    const before = socket.eventNames().map((event) => socket.listenerCount(event));
    taken.push(parley.upgrade(req, socket, head));
    if (taken.at(-1)) return;
    assert.deepEqual(
      socket.eventNames().map((event) => socket.listenerCount(event)),
      before,
    );
    own.handleUpgrade(req, socket, head, (ws) => ws.send(JSON.stringify({ type: "token", data: "own" })));
  });
  const { url, at } = await startOnPort(t, host);
  for (const path of ["/own", "/ws/chat", "/support/own", "/support/health"]) {
    const client = await connect(t, url.replace("http", "ws") + path);
    assert.deepEqual(await client.next(), { type: "token", data: "own" }, path);
  }
  const client = await connect(t, at("/support").socketUrl);
  assert.equal((await client.run({ message: "Hi" })).at(-1)?.type, "done");
  assert.deepEqual(taken, [false, false, false, false, true]);
});

for (const paths of [["/support"], ["/support", "/sales"]]) {
  test(`where ${paths.join(" and ")} alone listen for upgrades, one to another address is refused instead of left open`, async (t) => {
    const host = createServer();
    for (const basePath of paths) {
      const { handle, upgrade } = await mount(t, { basePath });
      host.on("upgrade", upgrade);
      const others = host.listeners("request") as RequestListener[];
      host
        .removeAllListeners("request")
        .on("request", (req, res) => handle(req, res, others[0] && (() => others[0]?.(req, res))));
    }
    const { port, at } = await startOnPort(t, host);
    const raw = await connectRaw(t, { port });
    await raw.write(...upgrade("/own"));
    assert.equal((await raw.answer()).status, 404);
    await raw.closed;
    const offer = await connectRaw(t, { port });
    await offer.write("GET /own HTTP/1.1", "host: x", "connection: Upgrade, HTTP2-Settings", "upgrade: h2c", "", "");
    assert.equal((await offer.answer()).status, 404);
    for (const path of paths) {
      const client = await connect(t, at(path).socketUrl);
      assert.equal((await client.run({ message: "Hi" })).at(-1)?.type, "done");
    }
  });
}

test("a body that was read before is an error that says what to do", async (t) => {
  const parley = await mount(t);
  const { url } = await startOnPort(
    t,
    createServer(async (req, res) => {
      await req.toArray();
      parley.handle(req, res);
    }),
  );
  const answer = await post({ url }, { message: "Hi" });
  const { error } = JSON.parse(await answer.text());
  assert.deepEqual([answer.status, error.code], [500, "internal"]);
  assert.match(error.message, /call parley\.handle before express\.json\(\)/);
});

/** Requests of pages to a mounted agent without a key, by their `Origin` and `Host`. */
const PAGES: readonly [settings: Record<string, string>, host: string, origin: string, status: number][] = [
  [{}, "localhost:3000", "http://localhost:3000", 200],
  [{}, "www.example.com", "https://www.example.com", 200],
  [{}, "www.example.com", "https://evil.example", 403],
  // Its owner could let the name resolve to 127.0.0.1 (DNS rebinding).
  [{}, "evil.example", "http://evil.example", 403],
  [{ PARLEY_ALLOWED_ORIGINS: "http://intranet" }, "intranet", "http://intranet", 200],
  [{ PARLEY_TRUSTED_PROXIES: "127.0.0.1" }, "www.example.com", "http://www.example.com", 200],
  [{ PARLEY_TRUSTED_PROXIES: "127.0.0.1" }, "www.example.com", "https://evil.example", 403],
];

for (const [settings, host, origin, status] of PAGES) {
  test(`with ${JSON.stringify(settings)} a page of ${origin} gets ${status} at ${host}, whatever the host's CORS says`, async (t) => {
    const parley = await mount(t, { settings });
    const lax: RequestListener = (req, res) => {
      res.setHeader("access-control-allow-origin", req.headers.origin ?? "*");
      res.setHeader("access-control-allow-credentials", "true");
      parley.handle(req, res);
    };
    const { port } = await startOnPort(t, createServer(lax).on("upgrade", parley.upgrade));
    const raw = await connectRaw(t, { port });
    const [, , ...rest] = chatRequest({ message: "Hi", stream: false }, `origin: ${origin}`);
    await raw.write("POST /api/chat HTTP/1.1", `host: ${host}`, ...rest);
    const { status: given, headers } = await raw.answer();
    assert.equal(given, status);
    assert.equal(headers.get("access-control-allow-origin"), status === 200 ? origin : undefined);
    assert.equal(headers.get("access-control-allow-credentials"), undefined);
    const socket = await connectRaw(t, { port });
    const lines = upgrade("/ws/chat", `origin: ${origin}`).map((line) => line.replace(/^host: .*/, `host: ${host}`));
    await socket.write(...lines);
    await socket.until("101 Switching Protocols\r\n");
    if (status === 403) await socket.until("may not use this server");
    socket.socket.destroy();
  });
}

test("the settings win over the environment, and what concerns the process that listens is not read there", async (t) => {
  const { PARLEY_CHAT_KEY: _key, ...before } = process.env;
  t.after(() => {
    process.env = before;
  });
  Object.assign(process.env, { PARLEY_CHAT_KEY: "of-the-environment", PORT: "\\\\.\\pipe\\host", PARLEY_WORKERS: "9" });
  const { url } = await startBare(t, { settings: { PARLEY_API_KEY: "own-key", PARLEY_CHAT_KEY: "own-chat-key" } });
  const ask = async (key: string) => {
    const headers = { authorization: `Bearer ${key}`, origin: url };
    return (await post({ url }, { message: "Hi", stream: false }, { headers })).status;
  };
  assert.deepEqual([await ask("own-key"), await ask("of-the-environment")], [200, 401]);
});

const DEMO = { name: "A", model: "demo" };
const authenticate = () => undefined;

const MISTAKES: readonly [options: unknown, sentence: RegExp][] = [
  [undefined, /^createParley needs an agent: createParley\(\{ agent: defineAgent/],
  [null, /^createParley needs an agent/],
  [{ basePath: "/a" }, /^createParley needs an agent/],
  [DEMO, /^createParley takes the agent as an option: createParley\(\{ agent/],
  [{ agent: "./agent.js" }, /^The agent is a string\. Give what defineAgent returns/],
  [{ agent: import("node:fs") }, /^The agent is a promise\. Write await before it\.$/],
  [{ agent: { ...DEMO, tool: [] } }, /Did you mean tools\?/],
  [{ agent: { ...DEMO, authenticate } }, /Export it beside the agent, or give it to createParley/],
  [{ agent: { default: DEMO, onMessage() {} } }, /^onMessage is exported beside the agent, where it does nothing\./],
  [
    { agent: { default: DEMO, authenticate }, authenticate },
    /exports authenticate, and it is an option, too\. Keep one/,
  ],
  [{ agent: DEMO, authenticate: "me" }, /authenticate must be a function/],
  [
    { agent: DEMO, onRunEnd() {} },
    /no option onRunEnd\. It is a field of the agent: defineAgent\(\{ onRunEnd, … \}\)\.$/,
  ],
  [
    { agent: DEMO, close() {} },
    /no option close\. Export it beside the agent, and pass the module, as import \* as agent/,
  ],
  [
    { agent: DEMO, PARLEY_API_KEY: "k" },
    /no option PARLEY_API_KEY\. It is a setting: settings: \{ PARLEY_API_KEY: "…" \}\.$/,
  ],
  [{ agent: DEMO, setings: {} }, /createParley has no option setings\. Did you mean settings\?/],
  [{ agent: DEMO, env: {} }, /no option env\. Did you mean settings\?$/],
  [{ agent: DEMO, path: "/a" }, /no option path\. Did you mean basePath\?$/],
  [{ agent: DEMO, port: 80 }, /no option port\. Its options are agent, authenticate, settings, basePath\.$/],
  [{ agent: DEMO, settings: null }, /^settings must be an object/],
  [
    { agent: DEMO, settings: { PARLEY_API_KEYS: "k" } },
    /settings has PARLEY_API_KEYS, .* Did you mean PARLEY_API_KEY\?/,
  ],
  [
    { agent: DEMO, settings: { DRAIN_SECONDS: "1" } },
    /settings has DRAIN_SECONDS, .* Did you mean PARLEY_DRAIN_SECONDS\?/,
  ],
  [{ agent: DEMO, settings: { PORT: "80" } }, /settings has PORT, which is a matter of your own server/],
  [{ agent: DEMO, settings: { PARLEY_ENV_FILE: ".env" } }, /has PARLEY_ENV_FILE, which is a matter of your own server/],
  [
    { agent: DEMO, settings: { PARLEY_API_KEY: undefined } },
    /PARLEY_API_KEY in settings must be a string, but is undefined\. Leave it out/,
  ],
  [
    { agent: DEMO, settings: { PARLEY_DRAIN_SECONDS: 3 } },
    /PARLEY_DRAIN_SECONDS in settings must be a string, but is number\. Write it in quotes\.$/,
  ],
  [
    { agent: DEMO, settings: { PARLEY_ALLOWED_ORIGINS: ["https://a.example"] } },
    /Write one string, separated by commas/,
  ],
  [{ agent: DEMO, settings: { PARLEY_DRAIN_SECONDS: "soon" } }, /PARLEY_DRAIN_SECONDS must be/],
  [{ agent: DEMO, basePath: "support/" }, /basePath must be a path such as \/support/],
  [{ agent: DEMO, basePath: "/a", settings: { PARLEY_BASE_PATH: "/b" } }, /Give the path once/],
  [
    { agent: { name: "A", model: "openai/gpt-5.2" }, settings: { OPENAI_API_KEY: "" } },
    /OPENAI_API_KEY: .* or in settings\./,
  ],
];

test("handle that is called in place of being passed on says so", async (t) => {
  const { handle } = await mount(t);
  assert.throws(() => Reflect.apply(handle, undefined, []), /pass it on without calling it\.$/);
});

for (const [options, sentence] of MISTAKES) {
  test(`a mistake in what createParley gets is refused with a sentence: ${sentence.source}`, async () => {
    await assert.rejects(createParley(options as ParleyOptions), refused(sentence));
  });
}

const MODULE = `
  export const authenticate = ({ token }) => {
    if (token === undefined) throw Object.assign(new Error("Sign in."), { [Symbol.for("parley-agent.Unauthorized")]: true });
    return { id: token };
  };
  export const closed = [];
  export const close = () => closed.push("closed");`;
const [AS_ESM, AS_CJS] = [
  'export default { name: "A", model: "demo" };',
  'exports.default = { name: "A", model: "demo" };',
];

for (const [file, source] of Object.entries({
  "agent.mjs": `${MODULE}\n${AS_ESM}`,
  "agent.cjs": `exports.__esModule = true;\n${AS_CJS}${MODULE.replaceAll("export const ", "exports.").replace("closed.push", "exports.closed.push")}`,
})) {
  test(`of a module that is given as the agent, authenticate is asked and close is called after the last run (${file})`, async (t) => {
    const path = join(temporaryProject(t, { [file]: source }), file);
    const agent = await import(pathToFileURL(path).href);
    const { parley, url } = await startBare(t, { agent });
    const ask = async (headers: Record<string, string>) =>
      (await post({ url }, { message: "Hi", stream: false }, { headers })).status;
    assert.deepEqual([await ask({}), await ask({ "x-user-token": "ada" })], [401, 200]);
    assert.deepEqual(agent.closed, []);
    await parley.close();
    assert.deepEqual(agent.closed, ["closed"]);
  });
}

test("two agents in one process share neither conversations, limits nor metrics, and one can be closed", async (t) => {
  const tight = { PARLEY_TRUSTED_PROXIES: "127.0.0.1", PARLEY_RATE_PER_ADDRESS: "1" };
  const agentOf = (name: string) => ({ ...AGENT, name });
  const sales = await mount(t, { agent: agentOf("Sales"), basePath: "/sales", settings: tight });
  const support = await mount(t, { agent: agentOf("Support"), basePath: "/support" });
  const { at } = await startOnPort(
    t,
    createServer((req, res) => sales.handle(req, res, () => support.handle(req, res))).on(
      "upgrade",
      (req, socket, head) => sales.upgrade(req, socket, head) || support.upgrade(req, socket, head) || socket.destroy(),
    ),
  );
  for (const path of ["/sales", "/support"]) {
    const info = await (await fetch(`${at(path).url}/api/info`)).json();
    assert.equal(info.name.toLowerCase(), path.slice(1));
  }
  const headers = { "x-forwarded-for": "203.0.113.1" };
  const ask = async (path: string) => (await post(at(path), { message: "Hi", stream: false }, { headers })).status;
  assert.deepEqual([await ask("/sales"), await ask("/sales")], [200, 429]);
  for (const transport of TRANSPORTS)
    assert.equal((await send[transport](t, at("/support"), { message: "Hi" })).last.type, "done");
  assert.match(await sales.metrics(), /parley_limited_total\{.*\} 1\n/);
  assert.match(await support.metrics(), /parley_runs_total\{transport="ws",end="stop"\} 1\n/);
  assert.doesNotMatch(await support.metrics(), /parley_limited_total/);
  const [gone, staying] = await Promise.all(["/sales", "/support"].map((path) => connect(t, at(path).socketUrl)));
  await sales.close();
  assert.equal((await gone?.closed)?.code, 1001);
  assert.equal((await fetch(`${at("/sales").url}/health/ready`)).status, 503);
  assert.equal((await staying?.run({ message: "Hi" }))?.at(-1)?.type, "done");
});

/** An agent whose tool waits until the test opens the gate or the run is aborted. */
function waitingAgent() {
  const begun = gate();
  const more = gate();
  const execute = async (_args: unknown, { signal }: ToolContext) => {
    begun.open();
    await Promise.race([more.opened, once(signal, "abort")]);
    return "Done.";
  };
  const tool = { name: "look", description: "Looks.", parameters: { type: "object" } as const, execute };
  return { agent: { ...AGENT, tools: [tool] }, begun, more };
}

for (const transport of ["sse", "socket"] as const) {
  test(`close() waits for the answer that runs, ends the connections, and resolves each time (${transport})`, async (t) => {
    const { agent, begun, more } = waitingAgent();
    const { parley, ...address } = await startBare(t, { agent, settings: { PARLEY_DRAIN_SECONDS: "20" } });
    const line = await openLine[transport](t, address, { message: "Look" });
    await within(begun.opened, "the tool's call");
    const idle = await connect(t, address.socketUrl);
    const closed = Promise.all([parley.close(), parley.close()]);
    assert.equal((await post(address, { message: "Hi", stream: false })).status, 503);
    more.open();
    assert.equal((await line.rest()).at(-1)?.type, "done");
    await within(closed, "the end of close()");
    assert.equal((await idle.closed).code, 1001);
    await parley.close();
  });

  test(`an answer that outlasts the drain ends with an error (${transport})`, async (t) => {
    const { agent, begun } = waitingAgent();
    const { parley, ...address } = await startBare(t, { agent });
    const line = await openLine[transport](t, address, { message: "Look" });
    await within(begun.opened, "the tool's call");
    await within(parley.close(), "the end of close()");
    const last = (await line.rest()).at(-1);
    assert.equal(last?.type === "error" && last.code, "shutting_down");
  });
}

test("after close() nothing of the project is called, no thread is started, and whoever asks hears that it is over", async (t) => {
  const called: string[] = [];
  const agent = { ...AGENT, onFeedback: () => void called.push("onFeedback") };
  const authenticate = () => void called.push("authenticate");
  const { parley, url, socketUrl, port } = await startBare(t, { agent, authenticate });
  const large = { message: "x".repeat(400_000), stream: false };
  const rating = { run: "run-of-this-test-0001", rating: "up" };
  const threads = () => process.getActiveResourcesInfo().filter((name) => name === "MessagePort").length;
  const before = threads();
  // These requests begin before `close()` and end after it.
  const bodies = [["/api/feedback", rating] as const, ["/api/chat", large] as const].map(async ([path, body]) => {
    const text = JSON.stringify(body);
    const raw = await connectRaw(t, { port });
    await raw.write(
      `POST ${path} HTTP/1.1`,
      "host: x",
      "content-type: application/json",
      `content-length: ${text.length}`,
      "",
      text.slice(0, 9),
    );
    return { raw, rest: text.slice(9) };
  });
  const begun = await Promise.all(bodies);
  while (called.length < begun.length) await turns();
  const closed = parley.close();
  await turns();
  for (const { raw, rest } of begun) {
    raw.socket.write(rest);
    assert.match((await raw.answer()).body, /"shutting_down"/);
  }
  await within(closed, "the end of close()");
  called.length = 0;
  const post = (path: string, body: object) => ({ path, method: "POST", body: JSON.stringify(body) });
  for (const { path, ...init } of [
    { path: "/api/info" },
    { path: "/api/chat/runs/run-of-this-test-0001" },
    post("/api/chat/runs/run-of-this-test-0001/cancel", {}),
    post("/api/feedback", rating),
    post("/api/chat", { message: "Hi", stream: false }),
    post("/api/chat", large),
  ]) {
    const answer = await fetch(url + path, { ...init, headers: { "content-type": "application/json" } });
    assert.deepEqual([path, answer.status, (await answer.json()).error?.code], [path, 503, "shutting_down"]);
  }
  await assert.rejects(connect(t, socketUrl), /503/);
  assert.deepEqual([called, threads()], [[], before]);
});

test("Express that mounts Parley at another path than its basePath is told so, once", async (t) => {
  const script = `
    const parley = await createParley({ agent: { name: "A", model: "demo" }, settings: { PARLEY_LOG: "json" } });
    for (const path of ["/support", "/other"]) {
      const req = { baseUrl: path, url: "/api/info", originalUrl: path + "/api/info", headers: {}, method: "GET" };
      parley.handle(req, {}, () => console.error("next"));
    }
    await parley.close();`;
  const { stderr } = await runScript(t, script);
  const said = stderr.split("\n").filter((line) => line.includes("mounted at"));
  assert.deepEqual(
    said.map((line) => JSON.parse(line).text),
    ['Parley is mounted at /support but has no basePath: pass basePath: "/support" to createParley.'],
  );
  assert.equal(stderr.match(/^next$/gm)?.length, 2);
});

test("two agents of one id and secret in a process are told so, until one of them is closed", async (t) => {
  const script = `
    const mount = (name, secret, id) => createParley({ agent: { name, id, model: "demo" }, settings: { PARLEY_LOG: "json", PARLEY_STATE_SECRET: secret.repeat(32) } });
    const first = await mount("A", "s");
    const others = [await mount("B", "s"), await mount("A", "t"), await mount("A", "s", "a2"), await mount("B", "s", "A")];
    await Promise.all([first, others.at(-1)].map((parley) => parley.close()));
    await Promise.all([...others, await mount("A", "s")].map((parley) => parley.close()));`;
  const { stderr } = await runScript(t, script);
  const said = stderr.split("\n").filter((line) => line.includes("serves another agent"));
  assert.deepEqual(
    said.map((line) => [JSON.parse(line).level, /id \\?"(\w+)/.exec(JSON.parse(line).text)?.[1]]),
    [["warn", "A"]],
  );
});

/** Runs a module in a process of its own, in a folder with these files. */
async function runScript(t: Cleanup, script: string, files: Record<string, string> = {}) {
  const imports = `import { createParley } from ${JSON.stringify(pathToFileURL(join(DIST, "mount.js")).href)};\n`;
  const folder = temporaryProject(t, { "host.mjs": imports + script, ...files });
  const { PATH = "" } = process.env;
  return promisify(execFile)(process.execPath, ["host.mjs"], { cwd: folder, env: { PATH }, timeout: 60_000 });
}

test("a host's process gets no signal handlers, no output and no settings of its folder, and ends by itself after close()", async (t) => {
  const script = `
    import assert from "node:assert/strict";
    import { createServer } from "node:http";
    const before = process.eventNames().sort();
    const parley = await createParley({ agent: { name: "A", model: "demo" } });
    const server = createServer(parley.handle).on("upgrade", parley.upgrade).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const url = \`http://127.0.0.1:\${server.address().port}/api/chat\`;
    const headers = { "content-type": "application/json", connection: "close" };
    const answer = await fetch(url, { method: "POST", headers, body: '{"message":"Hi","stream":true}' });
    assert.match(await answer.text(), /event: done/);
    assert.deepEqual(process.eventNames().sort(), before);
    server.close();
    await parley.close();`;
  const { stdout, stderr } = await runScript(t, script, {
    ".env": "PARLEY_API_KEY=a-key-of-the-folder",
    "agent.ts": "throw new Error('The agent of the folder was loaded.');",
  });
  assert.equal(stdout, "");
  assert.match(stderr, /"msg":"run"/);
});

test("many servers in one process leave no listener behind", async () => {
  const count = () => process.stderr.listenerCount("error");
  const open = async () => (await createParley({ agent: DEMO })).close();
  await open();
  const before = count();
  for (let index = 0; index < 3; index += 1) await open();
  assert.equal(count(), before);
});
