/** A DOM with real network calls: those of happy-dom enforce a browser's origin rules. */

const { fetch, AbortController, AbortSignal, ReadableStream, TextDecoder } = globalThis;

await import("../support/dom.ts");
const { WebSocket } = await import("ws");

/** All opened sockets, so that tests can wait for events of the browser's side. */
export const openedSockets: InstanceType<typeof WebSocket>[] = [];

class RecordedWebSocket extends WebSocket {
  constructor(url: string | URL) {
    super(url);
    openedSockets.push(this);
  }
}

Object.assign(globalThis, {
  fetch,
  AbortController,
  AbortSignal,
  ReadableStream,
  TextDecoder,
  WebSocket: RecordedWebSocket,
});
