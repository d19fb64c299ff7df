/** Checks whether the server accepts a key, and this page. Loaded when a key is typed, or a page cannot use the server. */

import type { ErrorEvent } from "../../server/protocol/events.ts";
import { toJson } from "../../server/protocol/json.ts";
import { fetchFrom } from "./fetch.ts";
import { refusalOf } from "./http.ts";
import { parseEvent } from "./parse-event.ts";
import { ANSWER_WITHIN_MS, type Endpoint, TransportError } from "./transport.ts";
import { addressOf, endOf } from "./websocket.ts";

/** A proxy that swallows the upgrade does not answer at all, and the user waits. */
const OPEN_WITHIN_MS = 3_000;

/** A name that no run has: asking for its events shows whether the key is accepted. */
const NO_RUN = "is-this-key-accepted";

/**
 * Resolves with the refusal, if any; rejects when the server does not answer. Uses a WebSocket, if one opens: browsers
 * report a refusal over HTTP on the console.
 */
export async function check(endpoint: Endpoint): Promise<ErrorEvent | undefined> {
  if (endpoint.isSocketBlocked?.()) return checkOverHttp(endpoint);
  return checkOverSocket(endpoint).catch((error) => {
    if (error instanceof TransportError && error.code === "unreachable") return checkOverHttp(endpoint);
    throw error;
  });
}

/** As `check`, over a WebSocket alone: its messages can be read even if CORS blocks responses over HTTP. */
export function checkOverSocket(endpoint: Endpoint): Promise<ErrorEvent | undefined> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(addressOf(endpoint));
    let lastError: ErrorEvent | undefined;
    const end = (ended?: ErrorEvent | TransportError) => {
      clearTimeout(timer);
      socket.close();
      if (ended instanceof TransportError) reject(ended);
      else resolve(ended);
    };
    let timer = setTimeout(end, OPEN_WITHIN_MS, new TransportError("unreachable"));
    socket.addEventListener("error", () => end(new TransportError("unreachable")));
    socket.addEventListener("open", () => {
      clearTimeout(timer);
      timer = setTimeout(end, ANSWER_WITHIN_MS, new TransportError("connection_lost"));
      // `cleared` is the one answer that needs no run, so it proves that the key was accepted.
      socket.send(toJson({ type: "clear" }));
    });
    socket.addEventListener("message", ({ data }) => {
      const event = parseEvent(String(data));
      if (event?.type === "error") lastError = event;
      if (event?.type === "cleared") end();
    });
    socket.addEventListener("close", ({ code }) => end(endOf(code, lastError)));
  });
}

export async function checkOverHttp(endpoint: Endpoint): Promise<ErrorEvent | undefined> {
  const response = await fetchFrom(endpoint, `api/chat/runs/${NO_RUN}`, {
    signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
  });
  if (response.status === 401 || response.status === 403) return refusalOf(response);
  // Any other answer, such as that of a limit, says nothing about the key.
  if (response.status !== 404) throw new TransportError("unreadable");
  return undefined;
}
