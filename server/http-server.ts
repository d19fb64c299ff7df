import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Config } from "./config.ts";
import { limitConnections } from "./http/limit-connections.ts";

/** Node's own defaults changed between majors, so every figure is ours. */
export function createHttpServer({ times, maxConnections }: Config, { isWorker }: { isWorker: boolean }): Server {
  const http = createServer({
    maxHeaderSize: 16 * 1024,
    headersTimeout: times.header,
    requestTimeout: times.body,
    // Above the idle time of common load balancers, or they reuse a connection that we just closed.
    keepAliveTimeout: 75_000,
    connectionsCheckingInterval: 5_000,
    // Judged with every other request, so that the refusal looks like every other.
    requireHostHeader: false,
    noDelay: true,
  });
  if (isWorker) limitConnections(http, maxConnections);
  else http.maxConnections = maxConnections;
  return http;
}

/** Resolves with the page's URL once connections are taken. Rejects when the address cannot be had. */
export function listen(http: Server, { port, host }: Config): Promise<string> {
  return new Promise((resolve, reject) => {
    http.once("error", reject);
    http.listen(port, host, () => {
      http.off("error", reject);
      resolve(urlOf(http.address() as AddressInfo));
    });
  });
}

/** A wildcard address cannot be opened in a browser, so the loopback name stands for it. */
function urlOf({ address, port }: AddressInfo): string {
  const host = address === "0.0.0.0" || address === "::" ? "localhost" : address;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}/`;
}
