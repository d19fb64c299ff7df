import { openai } from "@ai-sdk/openai";
import { readUIMessageStream, ToolLoopAgent, tool } from "ai";
import { defineAgent } from "parley-agent";
import { z } from "zod";

const order = z.object({ order: z.string() });

const desk = new ToolLoopAgent({
  model: openai("gpt-5.2"),
  tools: {
    get_order_status: tool({ inputSchema: order, execute: ({ order }) => ({ order, status: "on its way" }) }),
    ask_carrier: tool({
      inputSchema: order,
      async *execute({ order }) {
        yield { status: "asking", text: "Calling the carrier" };
        yield `${order} is at the depot`;
      },
    }),
  },
});

const agent = new ToolLoopAgent({
  model: openai("gpt-5.2"),
  tools: {
    ask_desk: tool({
      description: "Asks the desk.",
      inputSchema: z.object({ input: z.string() }),
      async *execute({ input }, { abortSignal }) {
        const result = await desk.stream({ prompt: input, abortSignal });
        yield* readUIMessageStream({ stream: result.toUIMessageStream() });
      },
    }),
  },
});

export default defineAgent({ name: "Acme Support", run: agent });
