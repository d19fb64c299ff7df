import { openai } from "@ai-sdk/openai";
import { ToolLoopAgent, tool } from "ai";
import { defineAgent } from "parley-agent";
import { z } from "zod";

const agent = new ToolLoopAgent({
  model: openai("gpt-5.2"),
  tools: {
    cancel_order: tool({
      description: "Cancels an order.",
      inputSchema: z.object({ order: z.string() }),
      needsApproval: true,
      execute: ({ order }) => `cancelled ${order}`,
    }),
    get_order_status: tool({
      description: "Returns the status of an order.",
      inputSchema: z.object({ order: z.string() }),
      execute: ({ order }) => ({ order, status: "on its way" }),
    }),
  },
});

export default defineAgent({ name: "Acme Support", run: agent, accepts: ["image/png"] });
