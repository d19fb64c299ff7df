/** A DOM, with network calls that really go out: happy-dom's own ones follow a browser's origin rules. */

const { fetch, AbortController, AbortSignal, ReadableStream, TextDecoder } = globalThis;

await import("../support/dom.ts");
const { WebSocket } = await import("ws");

/** Every socket that was opened, so that a test can wait for what the browser's side notices. */
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
