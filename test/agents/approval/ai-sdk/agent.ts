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
  },
});

export default defineAgent({ name: "Acme Support", run: agent });
