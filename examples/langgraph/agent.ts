import { tool } from "@langchain/core/tools";
import { createReactAgent } from "@langchain/langgraph/prebuilt";
import { ChatOpenAI } from "@langchain/openai";
import { defineAgent } from "parley-agent";
import { z } from "zod";

const orderStatus = tool(({ order }) => ({ order, status: "on its way" }), {
  name: "get_order_status",
  description: "Returns the status of an order.",
  schema: z.object({ order: z.string() }),
});

const graph = createReactAgent({ llm: new ChatOpenAI({ model: "gpt-5.2" }), tools: [orderStatus] });

export default defineAgent({
  name: "Acme Support",
  run: ({ messages, signal }) => graph.stream({ messages }, { streamMode: ["messages", "tools"], signal }),
});
