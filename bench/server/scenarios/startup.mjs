/** From the start of the process to its first answer. */

import { randomInt } from "node:crypto";
import { connect, createServer } from "node:net";
import { now } from "../clock.mjs";
import { Process } from "../driver/processes.mjs";
import { BARE, targetEnv } from "../driver/targets.mjs";
import { median } from "../stats.mjs";
import { startsOf } from "./startup-projects.mjs";

const GIVE_UP_MS = 20_000;

export const startup = {
  name: "startup",
  title: "Start-up to the first answered request",
  transports: ["http"],
  /** It starts the server by itself, as it is. */
  startsItself: true,
  adds: [BARE],
  skips: ["floor-batch"],
  metrics: {
    ms: ["start-up with a plain object", "ms"],
    demo: ["with the demo agent", "ms"],
    typescript: ["with a project in TypeScript", "ms"],
    first: ["then the first message, to its first token", "ms"],
  },
  async run({ spec, provider, load, times }) {
    const taken = new Map();
    const note = (metric, ms) => taken.set(metric, [...(taken.get(metric) ?? []), ms]);
    for (let left = times.starts; left > 0; left--) {
      // In turns: a moment in which the machine is slow meets all of them.
      for (const [metric, args] of startsOf(spec)) {
        // The bare server takes no message.
        const takesMessage = metric === "ms" && spec !== BARE;
        const { ms, first } = await start({ ...spec, args }, provider.url, takesMessage && load);
        note(metric, ms);
        if (takesMessage) note("first", first);
      }
    }
    return Object.fromEntries([...taken].map(([metric, all]) => [metric, median(all)]));
  },
};

/** How long it took until `/health` was answered, and then, with a client, a message that was sent at once. */
async function start(target, providerUrl, load) {
  const port = await freePort();
  const begin = now();
  const child = new Process(target.name, target.args, targetEnv(target, providerUrl, port), {
    channel: false,
  });
  try {
    while (!(await answers(port))) {
      child.assertRunning();
      if (now() - begin > GIVE_UP_MS) throw new Error(`${target.name} does not answer /health`);
    }
    const ms = now() - begin;
    if (!load) return { ms };
    const base = `http://127.0.0.1:${port}/`;
    const once = { transport: "sse", count: 1, warmUp: 0, ms: GIVE_UP_MS };
    const { p50: first } = await load.call("firstTokens", { base, ...once });
    return { ms, first };
  } finally {
    await child.stop();
  }
}

/** Below what systems give to those who ask for any port: hardly anybody takes one of these until the target has it. */
const PORTS = { from: 30_000, to: 32_767 };

/** A port that was free a moment ago. */
async function freePort() {
  for (;;) {
    const port = randomInt(PORTS.from, PORTS.to + 1);
    if (await isFree(port)) return port;
  }
}

function isFree(port) {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", (error) => (error.code === "EADDRINUSE" ? resolve(false) : reject(error)));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}

/** Whether somebody answers; where nobody listens yet, after two milliseconds. */
function answers(port) {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => socket.write("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    socket.once("data", (bytes) => {
      socket.destroy();
      resolve(bytes.toString("latin1").startsWith("HTTP/1.1 200"));
    });
    socket.once("error", () => setTimeout(resolve, 2, false));
  });
}
