import { tool } from "@langchain/core/tools";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { createReactAgent } from "@langchain/langgraph/prebuilt";
import { ChatOpenAI } from "@langchain/openai";
import { defineAgent } from "parley-agent";
import { z } from "zod";

const orderStatus = tool(({ order }) => ({ order, status: "on its way" }), {
  name: "get_order_status",
  description: "Returns the status of an order.",
  schema: z.object({ order: z.string() }),
});

const llm = new ChatOpenAI({ model: "gpt-5.2" });
const researcher = createReactAgent({ llm, tools: [orderStatus] });
const graph = new StateGraph(MessagesAnnotation)
  .addNode("researcher", researcher)
  .addNode("writer", async ({ messages }) => ({ messages: [await llm.invoke(messages)] }))
  .addEdge(START, "researcher")
  .addEdge("researcher", "writer")
  .addEdge("writer", END)
  .compile();

export default defineAgent({
  name: "Acme Support",
  run: ({ messages, signal }) =>
    graph.stream({ messages }, { streamMode: ["messages", "tools"], subgraphs: true, signal }),
});
