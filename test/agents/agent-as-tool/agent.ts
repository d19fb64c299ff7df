import { Agent, RunState, run, tool } from "@openai/agents";
import { defineAgent, toRunState } from "parley-agent";
import { z } from "zod";

const parameters = z.object({ order: z.string() });

const cancelOrder = tool({
  name: "cancel_order",
  description: "Cancels an order.",
  parameters,
  needsApproval: true,
  execute: ({ order }) => `cancelled ${order}`,
});

const orderStatus = tool({
  name: "get_order_status",
  description: "Returns the status of an order.",
  parameters,
  execute: ({ order }) => ({ order, status: "on its way" }),
});

const askCarrier = tool({
  name: "ask_carrier",
  description: "Asks the carrier.",
  parameters,
  execute: ({ order }) => `${order} is at the depot`,
});

const desk = new Agent({ name: "Desk", model: "gpt-5.2", tools: [cancelOrder, orderStatus, askCarrier] });

export default defineAgent({
  name: "Acme Support",
  async *run({ message, state, ctx, signal, emit }) {
    // The desk reports its steps by a callback, so it must know the answer that they belong to.
    const askDesk = desk.asTool({ toolName: "ask_desk", toolDescription: "Asks the desk.", onStream: emit });
    const agent = new Agent({ name: "Concierge", model: "gpt-5.2", tools: [askDesk] });
    const input = (await toRunState(RunState, agent, ctx.approvals)) ?? message;
    const result = await run(agent, input, { stream: true, signal, previousResponseId: state });
    yield result;
    yield { type: "state", data: result.lastResponseId };
  },
});
