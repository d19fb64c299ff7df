/**
 * A small MCP server over stdio: requests come as lines of JSON on the standard input, and answers go out as lines. It needs no
 * package. A larger one is best written with @modelcontextprotocol/server.
 */

import { createInterface } from "node:readline";

const STOCK = new Map([
  ["city bike", 4],
  ["cargo bike", 1],
  ["folding bike", 0],
]);

const inputSchema = {
  type: "object",
  properties: { bike: { type: "string", enum: [...STOCK.keys()] } },
  required: ["bike"],
};

const TOOLS = {
  stock: {
    title: "Bikes in stock",
    description: "Tells how many bikes of one kind stand in the shop.",
    inputSchema,
    annotations: { readOnlyHint: true },
    run: ({ bike }) => `${bike}: ${STOCK.get(bike)} in stock`,
  },
  reserve: {
    title: "Reserve a bike",
    description: "Reserves a bike until the evening.",
    inputSchema,
    run: ({ bike }) => {
      const left = STOCK.get(bike);
      if (left === 0) throw new Error(`There is no ${bike} left.`);
      STOCK.set(bike, left - 1);
      return `One ${bike} is reserved until the evening.`;
    },
  },
};

const METHODS = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "shop", version: "1.0.0" },
    instructions: "Look at the stock before you reserve a bike.",
  }),
  ping: () => ({}),
  "tools/list": () => ({ tools: Object.entries(TOOLS).map(([name, { run, ...tool }]) => ({ name, ...tool })) }),
  "tools/call": ({ name, arguments: args }) => {
    try {
      return { content: [{ type: "text", text: TOOLS[name].run(args) }] };
    } catch (error) {
      return { content: [{ type: "text", text: error.message }], isError: true };
    }
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  // Without an id it is a notification, which gets no answer.
  if (id === undefined) continue;
  const work = METHODS[method];
  const answer = work ? { result: work(params) } : { error: { code: -32601, message: `There is no ${method}.` } };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
}
