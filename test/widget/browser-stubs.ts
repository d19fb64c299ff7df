/** What a browser has and the oldest Node has not, for tests without a DOM: WebSocket, storage, and a window without frames. */

import { WebSocket } from "ws";

/** Every socket that was opened, so that a test can wait for what the client's side notices. */
export const openedSockets: WebSocket[] = [];

class RecordedWebSocket extends WebSocket {
  constructor(url: string | URL) {
    super(url);
    openedSockets.push(this);
  }
}

/** As a browser's, with its properties: one by one as `Object.keys` sees them. */
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
