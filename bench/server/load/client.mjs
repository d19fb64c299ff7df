/** The load client: does what the driver tells it, and returns what it saw. */

import { serve } from "../rpc.mjs";
import { sendAttachments } from "./attachments.mjs";
import { gets } from "./gets.mjs";
import { inParallel, StreamGroup } from "./group.mjs";
import { answers, cutOne, firstTokens, saturate } from "./runs.mjs";
import { openSocket } from "./transports.mjs";

const groups = new Map();
let sockets = [];
let nextGroup = 1;

serve({
  saturate,
  firstTokens,
  cutOne,
  answers,
  gets,
  sendAttachments,
  /** Makes a group of streams; its name is for the calls below. */
  openGroup(target) {
    groups.set(nextGroup, new StreamGroup(target));
    return nextGroup++;
  },
  add: (group, spec) => groups.get(group).add(spec),
  shrink: (group, count) => groups.get(group).shrink(count),
  mark: (group) => groups.get(group).mark(),
  read: (group) => groups.get(group).read(),
  finish: (group, tokens) => groups.get(group).finish(tokens),
  stop(group) {
    groups.get(group).stop();
    groups.delete(group);
  },
  /** Opens sockets that say nothing. */
  async openIdle(base, count) {
    await inParallel(count, 100, async () => {
      sockets.push(await openSocket(base));
    });
    return sockets.length;
  },
  /** How many of them are still open. */
  countIdle: () => sockets.filter(({ readyState }) => readyState === 1).length,
  closeIdle() {
    for (const socket of sockets) socket.terminate();
    sockets = [];
  },
});
