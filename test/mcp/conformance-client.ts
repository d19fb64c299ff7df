/** The client of the makers' test: a server whose agent calls each tool of the address that it is started with once. */

import { post } from "../support/chat-transports.ts";
import { calling, startWith } from "./asking.ts";

/** The tools of the cases, and arguments that they take. */
const TOOLS: [string, object][] = [
  ["own__add_numbers", { a: 1, b: 2 }],
  ["own__test_reconnection", {}],
];

const closers: (() => unknown)[] = [];
const t = { after: (close: () => unknown) => void closers.push(close) };
const server = await startWith(t, { own: { url: process.argv.at(-1) ?? "" } }, { turns: calling(1, ...TOOLS) });
await (await post(server, { message: "Hi", stream: true })).text();
for (const close of closers) await close();
process.exit(0);
