/** Browser features that the oldest Node lacks, for tests without a DOM: WebSocket, storage, window. */

import { WebSocket } from "ws";

/** All opened sockets, so that tests can wait for events of the client's side. */
export const openedSockets: WebSocket[] = [];

class RecordedWebSocket extends WebSocket {
  constructor(url: string | URL) {
    super(url);
    openedSockets.push(this);
  }
}

/** Like a browser's storage: its items are own properties, visible to `Object.keys`. */
export class TestStorage {
  getItem(name: string): string | null {
    return Object.hasOwn(this, name) ? String(Reflect.get(this, name)) : null;
  }

  setItem(name: string, value: string): void {
    Reflect.set(this, name, value);
  }

  removeItem(name: string): void {
    Reflect.deleteProperty(this, name);
  }

  clear(): void {
    for (const name of Object.keys(this)) this.removeItem(name);
  }
}

const page = { WebSocket: RecordedWebSocket, localStorage: new TestStorage(), sessionStorage: new TestStorage() };
for (const [name, value] of Object.entries(page)) {
  Object.defineProperty(globalThis, name, { configurable: true, writable: true, value });
}
Object.assign(globalThis, { window: globalThis, top: globalThis, parent: globalThis, length: 0 });

const events = new EventTarget();
Object.assign(globalThis, {
  addEventListener: events.addEventListener.bind(events),
  removeEventListener: events.removeEventListener.bind(events),
  dispatchEvent: events.dispatchEvent.bind(events),
});
