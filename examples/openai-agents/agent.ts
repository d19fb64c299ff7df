import { Agent, run, tool } from "@openai/agents";
import { defineAgent } from "parley-agent";
import { z } from "zod";

const orderStatus = tool({
  name: "get_order_status",
  description: "Returns the status of an order.",
  parameters: z.object({ order: z.string() }),
  execute: ({ order }) => ({ order, status: "on its way" }),
});

const agent = new Agent({ name: "Concierge", model: "gpt-5.2", instructions: "Be brief.", tools: [orderStatus] });

export default defineAgent({
  name: "Acme Support",
  // OpenAI stores the conversation; its id comes back as `state` with the next message.
  async *run({ message, state, signal }) {
    const result = await run(agent, message, { stream: true, signal, previousResponseId: state });
    yield result;
    yield { type: "state", data: result.lastResponseId };
  },
});
