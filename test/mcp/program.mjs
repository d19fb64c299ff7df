/**
 * A scripted MCP server over stdio: `node program.mjs FILE`. It writes its process id and each call to the file. With STAYS in
 * its environment, it ends neither at the end of its input nor on SIGTERM.
 */

import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";

const [file] = process.argv.slice(2);
const note = (line) => appendFileSync(file, `${line}\n`);
note(`pid ${process.pid}`);

if (process.env.STAYS) {
  process.on("SIGTERM", () => {});
  setInterval(() => {}, 1000);
}

const text = (value) => ({ content: [{ type: "text", text: String(value) }] });

/** The result of each tool; `undefined`: none. */
const TOOLS = {
  pid: () => text(process.pid),
  env: () => text(JSON.stringify(process.env)),
  hang: () => undefined,
  noise: () => {
    process.stdout.write("not JSON\n");
    console.error("Something was said.");
    return text("after the noise");
  },
  large: () => text("x".repeat(100_000_000)),
};

const ANSWERS = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "program", version: "1" },
  }),
  "tools/list": () => ({ tools: Object.keys(TOOLS).map((name) => ({ name, inputSchema: { type: "object" } })) }),
  "tools/call": ({ name }) => {
    note(`call ${name}`);
    return TOOLS[name]();
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params = {} } = JSON.parse(line);
  const result = ANSWERS[method]?.(params);
  if (id !== undefined && result !== undefined) {
    process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`);
  }
}
