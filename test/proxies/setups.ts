/** The proxies that are tried, each with a server behind it. */

import { type TestContext, test } from "node:test";
import { type Edits, missing, type ProxyName, type ReverseProxy, startReverseProxy } from "../support/reverse-proxy.ts";
import { type Cleanup, type ServerOptions, startServer, type TestServer } from "../support/start-server.ts";

export interface Setup {
  readonly name: string;
  readonly proxy: ProxyName;
  readonly edits: Edits;
  /** Makes every time of the proxy one second, so that a second is a long silence. */
  readonly impatient: Edits;
}

export const SETUPS: readonly Setup[] = [
  { name: "nginx", proxy: "nginx", edits: [], impatient: [["proxy_read_timeout 620s;", "proxy_read_timeout 1s;"]] },
  {
    name: "an nginx that buffers as it does by default",
    proxy: "nginx",
    edits: [["        proxy_buffering off;\n", ""]],
    impatient: [["proxy_read_timeout 620s;", "proxy_read_timeout 1s;"]],
  },
  {
    name: "HAProxy",
    proxy: "haproxy",
    edits: [],
    impatient: [
      ["timeout client 620s", "timeout client 1s"],
      ["timeout server 620s", "timeout server 1s"],
    ],
  },
  // It has no time for silence by itself.
  { name: "Caddy", proxy: "caddy", edits: [], impatient: [] },
];

/** For the server: whose word on the client's address it takes. */
export const TRUSTING = { PARLEY_TRUSTED_PROXIES: "127.0.0.1" };

/** A test for one proxy, skipped where that is not installed. */
export function through({ name, proxy }: Setup, title: string, run: (t: TestContext) => Promise<void>): void {
  void test(`through ${name}: ${title}`, { skip: missing(proxy) }, run);
}

/** Starts a server in this process, and the proxy in front of it. */
export async function startBehind(
  t: Cleanup,
  { proxy, edits }: Setup,
  options: ServerOptions,
  more: { edits?: Edits; host?: string } = {},
): Promise<{ server: TestServer; front: ReverseProxy }> {
  const server = await startServer(t, { ...options, env: { ...TRUSTING, ...options.env } });
  const front = await startReverseProxy(t, proxy, server.port, { ...more, edits: [...edits, ...(more.edits ?? [])] });
  return { server, front };
}
