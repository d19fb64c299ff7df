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

const desk = new Agent({ name: "Desk", model: "gpt-5.2", tools: [cancelOrder] });

const agent = new Agent({
  name: "Concierge",
  model: "gpt-5.2",
  tools: [desk.asTool({ toolName: "ask_desk", toolDescription: "Asks the desk." })],
});

export default defineAgent({
  name: "Acme Support",
  async *run({ message, state, ctx, signal }) {
    const input = (await toRunState(RunState, agent, ctx.approvals)) ?? message;
    const result = await run(agent, input, { stream: true, signal, previousResponseId: state });
    yield result;
    yield { type: "state", data: result.lastResponseId };
  },
});
