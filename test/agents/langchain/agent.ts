import { Command, MemorySaver } from "@langchain/langgraph";
import { ChatOpenAI } from "@langchain/openai";
import { createAgent, HumanMessage, humanInTheLoopMiddleware, tool } from "langchain";
import { defineAgent, toResume } from "parley-agent";
import { z } from "zod";

const cancelOrder = tool(({ order }) => `cancelled ${order}`, {
  name: "cancel_order",
  description: "Cancels an order.",
  schema: z.object({ order: z.string() }),
});

const orderStatus = tool(({ order }) => ({ order, status: "on its way" }), {
  name: "get_order_status",
  description: "Returns the status of an order.",
  schema: z.object({ order: z.string() }),
});

const agent = createAgent({
  model: new ChatOpenAI({ model: "gpt-5.2" }),
  tools: [cancelOrder, orderStatus],
  middleware: [humanInTheLoopMiddleware({ interruptOn: { cancel_order: true } })],
  checkpointer: new MemorySaver(), // In production: a database.
});

export default defineAgent({
  name: "Acme Support",
  accepts: ["image/png"],
  async *run({ message, messages, attachments, state, ctx, signal }) {
    const thread = { thread_id: ctx.conversation };
    const images = attachments.map(({ mimeType, data }) => {
      return {
        type: "image_url",
        image_url: { url: `data:${mimeType};base64,${Buffer.from(data).toString("base64")}` },
      };
    });
    // OpenAI's clients bring the conversation with each message, which begins a thread.
    const before = ctx.run.transport === "openai" ? messages.slice(0, -1) : [];
    const asked = new HumanMessage({ content: [{ type: "text", text: message || "A picture." }, ...images] });
    yield agent.streamEvents(
      ctx.approvals.length > 0 ? new Command({ resume: toResume(ctx.approvals) }) : { messages: [...before, asked] },
      { version: "v2", signal, configurable: { ...thread, ...(state as object) } },
    );
    // Where the thread is now: a message that is changed later goes on from the place before it.
    const { config } = await agent.graph.getState({ configurable: thread });
    yield { type: "state", data: { checkpoint_id: config.configurable?.checkpoint_id } };
  },
});
