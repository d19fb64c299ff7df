import { Agent, RunState, run, tool } from "@openai/agents";
import { defineAgent, toRunState } from "parley-agent";
import { z } from "zod";

const cancelOrder = tool({
  name: "cancel_order",
  description: "Cancels an order.",
  parameters: z.object({ order: z.string() }),
  needsApproval: true,
  execute: ({ order }) => `cancelled ${order}`,
});

const orderStatus = tool({
  name: "get_order_status",
  description: "Returns the status of an order.",
  parameters: z.object({ order: z.string() }),
  execute: ({ order }) => ({ order, status: "on its way" }),
});

const agent = new Agent({ name: "Concierge", model: "gpt-5.2", tools: [cancelOrder, orderStatus] });

export default defineAgent({
  name: "Acme Support",
  async *run({ message, state, ctx, signal }) {
    const input = (await toRunState(RunState, agent, ctx.approvals)) ?? message;
    const result = await run(agent, input, { stream: true, signal, previousResponseId: state });
    yield result;
    yield { type: "state", data: result.lastResponseId };
  },
});
