import { openai } from "@ai-sdk/openai";
import { ToolLoopAgent, tool } from "ai";
import { defineAgent } from "parley-agent";
import { z } from "zod";

const agent = new ToolLoopAgent({
  model: openai("gpt-5.2"),
  instructions: "You help customers of Acme. Be brief.",
  tools: {
    get_order_status: tool({
      description: "Returns the status of an order.",
      inputSchema: z.object({ order: z.string() }),
      execute: ({ order }) => ({ order, status: "on its way" }),
    }),
  },
});

export default defineAgent({ name: "Acme Support", run: agent, accepts: ["image/png", "image/jpeg"] });
