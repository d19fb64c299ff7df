/** What other people's streams feel while large files arrive, and how much memory one takes. */

import { sleep } from "../clock.mjs";

const STREAMS = 20;
const RATE = 50;
const FILES = 4;
const FILE_BYTES = 20 * 1024 * 1024;
const MIB = 1024 * 1024;

export const attachments = {
  name: "attachments",
  title: "20 streams while four messages with 20 MiB attachments arrive at once",
  transports: ["sse", "ws"],
  metrics: {
    pause: ["worst pause", "ms"],
    quiet: ["worst pause without them", "ms"],
    seconds: ["until the last answer", "s"],
    peak: ["peak memory per attachment", "MiB"],
    cpu: ["CPU per attachment", "ms"],
  },
  async run({ base, transport, load, sender, provider, target, measured }) {
    const group = await load.call("openGroup", { base, transport });
    const order = { tokens: 10_000_000, rate: RATE };
    await load.call("add", group, { count: STREAMS, order, spreadMs: 500 });
    const spec = { base, transport, bytes: FILE_BYTES };
    // The first one pays for code that is loaded and compiled with it.
    await sender.call("sendAttachments", { ...spec, count: 1 });
    await provider.call("takeLargeBodies");
    const before = await target.call("settle");
    // The collection of garbage held up tokens, which are not to be counted.
    await sleep(200);
    await load.call("mark", group);
    await sleep(500);
    const quiet = await load.call("read", group);
    await load.call("mark", group);
    const { value, cpu, peak } = await measured(() => sender.call("sendAttachments", { ...spec, count: FILES }));
    const { age } = await load.call("read", group);
    const arrived = await provider.call("takeLargeBodies");
    if (arrived < (FILES * FILE_BYTES * 4) / 3) {
      throw new Error(`the provider got ${arrived} bytes: not all attachments came through`);
    }
    await load.call("stop", group);
    return {
      pause: age.max,
      quiet: quiet.age.max,
      seconds: value.seconds,
      peak: Math.max(0, peak - before) / FILES / MIB,
      cpu: cpu / 1000 / FILES,
    };
  },
};
