import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, streamText, tool } from "ai";
import { z } from "zod";

const { BASE_URL: baseURL, KEY: apiKey } = process.env;
const model = createOpenAICompatible({ name: "parley", baseURL, apiKey, includeUsage: true })("agent");
const asked = (content) => ({
  model,
  maxRetries: 0,
  messages: [
    { role: "user", content: "My dog is Rex." },
    { role: "assistant", content: "Noted." },
    { role: "user", content },
  ],
});

const whole = await generateText(asked("Who is Rex?"));
const stream = streamText(asked("Look."));
const streamed = await stream.text;
let calls = 0;
const own = tool({ description: "Its own.", inputSchema: z.object({}), execute: () => ++calls });
const loop = await generateText({ ...asked("Now."), tools: { own } });
const failure = await generateText(asked("Fail.")).catch(({ statusCode }) => statusCode);
const { totalTokens: tokens } = await stream.usage;
const thoughts = await stream.reasoningText;
console.log(JSON.stringify({ whole: whole.text, streamed, thoughts, tokens, loop: loop.text, calls, failure }));
