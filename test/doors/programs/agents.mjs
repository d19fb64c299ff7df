import { Agent, OpenAIChatCompletionsModel, run, setTracingDisabled, tool } from "@openai/agents";
import OpenAI from "openai";
import { z } from "zod";

setTracingDisabled(true);
const client = new OpenAI({ baseURL: process.env.BASE_URL, apiKey: process.env.KEY, maxRetries: 0 });
let calls = 0;
const own = tool({ name: "own", description: "Its own.", parameters: z.object({}), execute: () => String(++calls) });
const model = new OpenAIChatCompletionsModel(client, "agent");
const agent = new Agent({ name: "Caller", instructions: "Ask.", model, tools: [own] });
const asked = (content) => [
  { role: "user", content: "My dog is Rex." },
  { role: "assistant", status: "completed", content: [{ type: "output_text", text: "Noted." }] },
  { role: "user", content },
];

const whole = await run(agent, asked("Who is Rex?"));
const stream = await run(agent, asked("Look."), { stream: true });
let streamed = "";
for await (const piece of stream.toTextStream()) streamed += piece;
await stream.completed;
const loop = await run(agent, asked("Now."));
const failure = await run(agent, asked("Fail.")).catch(({ status }) => status);
const tokens = stream.state.usage.totalTokens;
console.log(
  JSON.stringify({
    whole: whole.finalOutput,
    streamed,
    thoughts: null,
    tokens,
    loop: loop.finalOutput,
    calls,
    failure,
  }),
);
