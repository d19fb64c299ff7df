import { type ToolRunnableConfig, tool } from "@langchain/core/tools";
import type { LangGraphRunnableConfig } from "@langchain/langgraph";
import { createReactAgent } from "@langchain/langgraph/prebuilt";
import { ChatOpenAI } from "@langchain/openai";
import { defineAgent } from "parley-agent";
import { z } from "zod";

const schema = z.object({ order: z.string() });

const orderStatus = tool(({ order }) => ({ order, status: "on its way" }), {
  name: "get_order_status",
  description: "Returns the status of an order.",
  schema,
});

const askCarrier = tool(
  ({ order }, { writer, toolCall }: ToolRunnableConfig & LangGraphRunnableConfig) => {
    writer?.({ progress: "Calling the carrier", toolCallId: toolCall?.id });
    return `${order} is at the depot`;
  },
  { name: "ask_carrier", description: "Asks the carrier.", schema },
);

const llm = new ChatOpenAI({ model: "gpt-5.2" });
const desk = createReactAgent({ llm, tools: [orderStatus, askCarrier] });

const askDesk = tool(
  async ({ input }, config) => {
    const { messages } = await desk.invoke({ messages: [{ role: "user", content: input }] }, config);
    return messages.at(-1)?.content;
  },
  { name: "ask_desk", description: "Asks the desk.", schema: z.object({ input: z.string() }) },
);

// In version 2, each call is its own task, so that the steps of parallel desks can be told apart.
const graph = createReactAgent({ llm, tools: [askDesk], version: "v2" });

export default defineAgent({
  name: "Acme Support",
  run: ({ messages, signal }) =>
    graph.stream({ messages }, { streamMode: ["messages", "tools", "tasks", "custom"], subgraphs: true, signal }),
});
