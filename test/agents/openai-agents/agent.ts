import { Agent, RunState, run, tool, user } from "@openai/agents";
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
  accepts: ["image/png"],
  async *run({ message, attachments, state, ctx, signal }) {
    const images = attachments.map(({ mimeType, data }) => {
      return { type: "input_image" as const, image: `data:${mimeType};base64,${Buffer.from(data).toString("base64")}` };
    });
    const asked = [user([{ type: "input_text", text: message || "A picture." }, ...images])];
    const input = (await toRunState(RunState, agent, ctx.approvals)) ?? asked;
    const result = await run(agent, input, { stream: true, signal, previousResponseId: state });
    yield result;
    yield { type: "state", data: result.lastResponseId };
  },
});
