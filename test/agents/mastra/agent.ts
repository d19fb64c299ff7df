import { Mastra } from "@mastra/core";
import { Agent } from "@mastra/core/agent";
import { InMemoryStore } from "@mastra/core/storage";
import { createTool } from "@mastra/core/tools";
import { defineAgent, toModelMessages } from "parley-agent";
import { z } from "zod";

const cancelOrder = createTool({
  id: "cancel_order",
  description: "Cancels an order.",
  inputSchema: z.object({ order: z.string() }),
  requireApproval: true,
  execute: async ({ order }) => `cancelled ${order}`,
});

const orderStatus = createTool({
  id: "get_order_status",
  description: "Returns the status of an order.",
  inputSchema: z.object({ order: z.string() }),
  execute: async ({ order }) => ({ order, status: "on its way" }),
});

const concierge = new Agent({
  id: "concierge",
  name: "Concierge",
  instructions: "Be brief.",
  model: "openai/gpt-5.2",
  tools: { cancel_order: cancelOrder, get_order_status: orderStatus },
});

// What waits for a person is kept here. In production: a database.
const mastra = new Mastra({ agents: { concierge }, storage: new InMemoryStore() });

export default defineAgent({
  name: "Acme Support",
  accepts: ["image/png"],
  run(input) {
    const { ctx, message, signal } = input;
    const agent = mastra.getAgent("concierge");
    const [decision] = ctx.approvals; // Mastra asks about one call at a time.
    if (decision === undefined || message !== "") return agent.stream(toModelMessages(input), { abortSignal: signal });
    const { approved, reason, kept } = decision;
    const options = { ...kept, reason, abortSignal: signal };
    return approved ? agent.approveToolCall(options) : agent.declineToolCall(options);
  },
});
