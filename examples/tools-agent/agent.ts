import { setTimeout as delay } from "node:timers/promises";
import { defineAgent, ToolError, tool } from "parley-agent";
import { z } from "zod";

const STOCK = new Map([
  ["city bike", 4],
  ["cargo bike", 1],
  ["folding bike", 0],
]);

const HOURS = { brakes: 0.5, gears: 1, wheel: 1.5 };
const EUROS_PER_HOUR = 60;

/** Parameters as a JSON Schema: nothing to install, and the arguments' type follows from it. */
const getStock = tool({
  name: "get_stock",
  description: "Tells how many bikes of one kind stand in the shop.",
  parameters: {
    type: "object",
    properties: { bike: { type: "string", enum: [...STOCK.keys()] } },
    required: ["bike"],
    additionalProperties: false,
  },
  execute: ({ bike }) => ({ bike, inStock: STOCK.get(bike) ?? 0 }),
});

/** Parameters as a zod object: the arguments' type follows from it. */
const quoteRepair = tool({
  name: "quote_repair",
  description: "Works out what a repair costs.",
  parameters: z.object({
    part: z.enum(["brakes", "gears", "wheel"]),
    count: z.int().min(1).max(4).describe("How many of them are broken."),
  }),
  async execute({ part, count }, { signal }) {
    // The message of a ToolError is for the model, which can ask the customer, and for the chat.
    if (part === "gears" && count > 1) throw new ToolError("A bike has only one set of gears.");
    // Stands for a question to another system. With `signal`, pressing Stop ends it too.
    await delay(300, undefined, { signal });
    return { part, count, euros: HOURS[part] * count * EUROS_PER_HOUR };
  },
});

export default defineAgent({
  name: "Spoke & Chain",
  agent: "Workshop desk",
  model: "demo",
  instructions: "You work at the desk of a bicycle shop. Use your tools for stock and prices.",
  tools: [getStock, quoteRepair],
  maxTurns: 6,
  chat: {
    welcome: "Spoke & Chain, good day! Bikes or repairs?",
    suggestions: ["Which bikes are in stock, and what does a repair cost?"],
  },
});
