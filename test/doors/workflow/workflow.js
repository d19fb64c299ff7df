// In the shape of what Agent Builder exports for one agent, with the word `export` before it, and what the page has put in place of its list.
import { Agent, Runner, tool, withTrace } from "@openai/agents";
import { z } from "zod";
import { conversationOf } from "./conversation.js";

const getOrderStatus = tool({
  name: "get_order_status",
  description: "Returns the status of an order.",
  parameters: z.object({ order: z.string() }),
  execute: async ({ order }) => ({ order, status: "on its way" }),
});

export const myAgent = new Agent({
  name: "My agent",
  instructions: "Be brief.",
  model: "gpt-5.2",
  tools: [getOrderStatus],
  modelSettings: { store: true },
});

export const runWorkflow = async (workflow) =>
  withTrace("New workflow", async () => {
    const conversationHistory =
      workflow.messages === undefined
        ? [{ role: "user", content: [{ type: "input_text", text: workflow.input_as_text }] }]
        : conversationOf(workflow.messages);
    const runner = new Runner({ traceMetadata: { __trace_source__: "agent-builder", workflow_id: "wf_1" } });
    const result = await runner.run(myAgent, [...conversationHistory]);
    conversationHistory.push(...result.newItems.map((item) => item.rawItem));
    return { output_text: result.finalOutput ?? "" };
  });
