import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

/** Systems give connections that go out a port from 32768 on, at any moment: a program started later may find such a one taken. */
const [FIRST, LAST] = [20_000, 32_767];

/** A port of this machine that nobody listens on, and that no connection gets by itself: it stays free for a program, also when that starts again. */
export async function freePort(host = "127.0.0.1"): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, LAST + 1);
    const server = createServer().listen(port, host);
    const isFree = await once(server, "listening").then(
      () => true,
      (error: NodeJS.ErrnoException) => {
        if (error.code === "EADDRINUSE") return false;
        throw error;
      },
    );
    if (!isFree) continue;
    server.close();
    await once(server, "close");
    return port;
  }
}
