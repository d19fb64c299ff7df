import { ChatOpenAI } from "@langchain/openai";
import { createAgent, tool } from "langchain";
import { defineAgent } from "parley-agent";
import { z } from "zod";

const schema = z.object({ order: z.string() });

const orderStatus = tool(({ order }) => ({ order, status: "on its way" }), {
  name: "get_order_status",
  description: "Returns the status of an order.",
  schema,
});

const askCarrier = tool(({ order }) => `${order} is at the depot`, {
  name: "ask_carrier",
  description: "Asks the carrier.",
  schema,
});

const model = new ChatOpenAI({ model: "gpt-5.2" });
const desk = createAgent({ model, tools: [orderStatus, askCarrier] });

const askDesk = tool(
  async ({ input }, config) => {
    const { messages } = await desk.invoke({ messages: [{ role: "user", content: input }] }, config);
    return messages.at(-1)?.content;
  },
  { name: "ask_desk", description: "Asks the desk.", schema: z.object({ input: z.string() }) },
);

const agent = createAgent({ model, tools: [askDesk] });

export default defineAgent({
  name: "Acme Support",
  run: ({ messages, signal }) => agent.streamEvents({ messages }, { version: "v2", signal }),
});
