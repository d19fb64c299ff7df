import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

/** From port 32768 on, the system may at any moment assign a port to an outgoing connection. */
const [FIRST, LAST] = [20_000, 32_767];

/** A port without a listener, which no outgoing connection gets: it stays free even while a program restarts. */
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
