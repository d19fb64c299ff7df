/** Requests to the server over HTTP. */

import { type Endpoint, TransportError } from "./transport.ts";

/**
 * Rejects with `unreachable` when the server has not responded. A message may be sent again then: the server answers
 * each run id once. An aborted request may have arrived: `connection_lost`.
 */
export async function fetchFrom(endpoint: Endpoint, path: string, init: RequestInit): Promise<Response> {
  const key = endpoint.key();
  const authorization = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const headers = { ...init.headers, ...authorization, ...userHeader(endpoint.userToken?.()) };
  // Cookies are sent only to a server of the page's own origin.
  const response = await fetch(new URL(path, endpoint.server), { ...init, headers, redirect: "manual" }).catch(
    (cause: unknown) => {
      throw new TransportError(init.signal?.aborted ? "connection_lost" : "unreachable", { cause });
    },
  );
  if (isOfProxy(response)) throw new TransportError("unreachable");
  endpoint.onOpen?.();
  return response;
}

export function userHeader(token: string | undefined): Record<string, string> {
  return token === undefined ? {} : { "x-user-token": token };
}

/** See `Transport.cancel`. */
export function cancelRun(endpoint: Endpoint, run: string): Promise<boolean> {
  // `keepalive`: it is sent although the page may be closing.
  return fetchFrom(endpoint, `api/chat/runs/${run}/cancel`, { method: "POST", keepalive: true }).then(
    ({ ok }) => ok,
    () => false,
  );
}

/** Whether a proxy answers for a server that is down, whose own errors are JSON, or (0) redirects: no key is sent there. */
function isOfProxy({ status, headers }: Response): boolean {
  return [0, 502, 503, 504].includes(status) && !headers.get("content-type")?.startsWith("application/json");
}
