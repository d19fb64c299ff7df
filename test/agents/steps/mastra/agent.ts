import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { defineAgent } from "parley-agent";
import { z } from "zod";

const inputSchema = z.object({ order: z.string() });

const orderStatus = createTool({
  id: "get_order_status",
  description: "Returns the status of an order.",
  inputSchema,
  execute: async ({ order }) => ({ order, status: "on its way" }),
});

const askCarrier = createTool({
  id: "ask_carrier",
  description: "Asks the carrier.",
  inputSchema,
  async execute({ order }, { writer }) {
    await writer?.write({ status: "Calling the carrier" });
    return `${order} is at the depot`;
  },
});

const desk = new Agent({
  id: "desk",
  name: "Desk",
  description: "Knows all orders.",
  instructions: "Be brief.",
  model: "openai/gpt-5.2",
  tools: { get_order_status: orderStatus, ask_carrier: askCarrier },
});

const concierge = new Agent({
  id: "concierge",
  name: "Concierge",
  instructions: "Be brief.",
  model: "openai/gpt-5.2",
  agents: { desk },
});

export default defineAgent({
  name: "Acme Support",
  run: ({ messages, signal }) => concierge.stream(messages, { abortSignal: signal }),
});
