/** The client for MCP's conformance test: a server whose agent calls each tool at the given address once. */

import { post } from "../support/chat-transports.ts";
import { calling, startWith } from "./asking.ts";

/** The tools of the scenarios, with valid arguments. */
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
