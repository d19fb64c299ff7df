/** The tested proxies, each in front of a server. */

import { type TestContext, test } from "node:test";
import { type Edits, missing, type ProxyName, type ReverseProxy, startReverseProxy } from "../support/reverse-proxy.ts";
import { type Cleanup, type ServerOptions, startServer, type TestServer } from "../support/start-server.ts";

export interface Setup {
  readonly name: string;
  readonly proxy: ProxyName;
  readonly edits: Edits;
  /** Path under which the proxy serves the server, or "". */
  readonly path: string;
  /** The server's environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Sets all of the proxy's timeouts to two seconds, so that a longer silence tests them. */
  readonly impatient: Edits;
}

const AT_ROOT = { path: "", env: {} };

/** The proxy forwards the path, and the server knows it. */
const PASSED = { path: "/support", env: { PARLEY_BASE_PATH: "/support" } };

/** The proxy removes the path, which the server does not know. */
const STRIPPED = { path: "/support", env: {} };

const nginx = {
  proxy: "nginx",
  edits: [],
  impatient: [["proxy_read_timeout 620s;", "proxy_read_timeout 2s;"]],
} as const;

const haproxy = {
  proxy: "haproxy",
  edits: [],
  impatient: [
    ["timeout client 620s", "timeout client 2s"],
    ["timeout server 620s", "timeout server 2s"],
  ],
} as const;

// Caddy has no idle timeout by default.
const caddy = { proxy: "caddy", edits: [], impatient: [] } as const;

export const SETUPS: readonly Setup[] = [
  { name: "nginx", ...nginx, ...AT_ROOT },
  {
    name: "an nginx that buffers as it does by default",
    ...nginx,
    edits: [["        proxy_buffering off;\n", ""]],
    ...AT_ROOT,
  },
  { name: "HAProxy", ...haproxy, ...AT_ROOT },
  { name: "Caddy", ...caddy, ...AT_ROOT },
];

/** Each is configured as in its example. */
export const BELOW_A_PATH: readonly Setup[] = [
  { name: "nginx, which passes a path on", ...nginx, edits: [["location / {", "location /support/ {"]], ...PASSED },
  {
    name: "nginx, which strips a path",
    ...nginx,
    edits: [
      ["location / {", "location /support/ {"],
      ["proxy_pass http://parley;", "proxy_pass http://parley/;"],
    ],
    ...STRIPPED,
  },
  { name: "HAProxy, which passes a path on", ...haproxy, ...PASSED },
  {
    name: "HAProxy, which strips a path",
    ...haproxy,
    edits: [["    #http-request", "    http-request"]],
    ...STRIPPED,
  },
  { name: "Caddy, which passes a path on", ...caddy, ...PASSED },
  {
    name: "Caddy, which strips a path",
    ...caddy,
    edits: [
      ["#redir", "redir"],
      ["#uri", "uri"],
    ],
    ...STRIPPED,
  },
];

/** The server's environment: the proxy whose client address it trusts. */
export const TRUSTING = { PARLEY_TRUSTED_PROXIES: "127.0.0.1" };

/** Started proxies and servers, per test. */
const started = new WeakMap<Cleanup, Behind>();

/** A test for one proxy, skipped if the proxy is not installed. A failed test prints the output of proxy and server. */
export function through({ name, proxy }: Setup, title: string, run: (t: TestContext) => Promise<void>): void {
  void test(`through ${name}: ${title}`, { skip: missing(proxy) }, async (t) => {
    try {
      await run(t);
    } catch (error) {
      const { front, server } = started.get(t) ?? {};
      console.error(`${name}:\n${front?.log()}\nParley:\n${server?.log.join("")}`);
      throw error;
    }
  });
}

interface Behind {
  server: TestServer;
  front: ReverseProxy;
}

/** Starts a server in this process, and the proxy in front of it. */
export async function startBehind(
  t: Cleanup,
  { proxy, edits, path, env }: Setup,
  options: ServerOptions,
  more: { edits?: Edits; host?: string } = {},
): Promise<Behind> {
  const server = await startServer(t, { ...options, env: { ...TRUSTING, ...env, ...options.env } });
  const front = await startReverseProxy(t, proxy, server.port, {
    ...more,
    edits: [...edits, ...(more.edits ?? [])],
    path,
  });
  started.set(t, { server, front });
  return { server, front };
}
