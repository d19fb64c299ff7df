/** A network between client and server that forwards every byte until the test freezes or cuts it. */

import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import type { Cleanup } from "./start-server.ts";

export interface Relay {
  /** Without a slash at the end. */
  readonly url: string;
  /** Connections stay open, but no data pass; neither side notices. */
  freeze(): void;
  thaw(): void;
  /** Delays all further bytes by `ms` milliseconds in both directions, in order. */
  delay(ms: number): void;
  /** Cuts all open connections, including frozen ones. */
  cut(): void;
}

/** Starts a relay on a free port of this machine, in front of the port `target`. */
export async function startRelay(t: Cleanup, target: number): Promise<Relay> {
  const sockets = new Set<Socket>();
  let isFrozen = false;
  let delayMs: number | undefined;
  const add = (socket: Socket, other: () => Socket) => {
    sockets.add(socket);
    if (isFrozen) socket.pause();
    let passed = Promise.resolve();
    socket.on("data", (bytes) => {
      const write = () => void other().write(bytes);
      if (delayMs === undefined) return write();
      const due = pause(delayMs);
      passed = passed.then(() => due).then(write);
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      sockets.delete(socket);
      other().destroy();
    });
  };
  const server = createServer((near) => {
    const far = connect(target, "127.0.0.1");
    add(near, () => far);
    add(far, () => near);
  });
  const each = (act: (socket: Socket) => void) => {
    for (const socket of [...sockets]) act(socket);
  };
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(async () => {
    server.close();
    each((socket) => socket.destroy());
    await once(server, "close");
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    freeze() {
      isFrozen = true;
      each((socket) => socket.pause());
    },
    thaw() {
      isFrozen = false;
      each((socket) => socket.resume());
    },
    delay(ms) {
      delayMs = ms;
    },
    cut: () => each((socket) => socket.destroy()),
  };
}
