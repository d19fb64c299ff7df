import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatOpenAI } from "@langchain/openai";
import { z } from "zod";

const { BASE_URL: baseURL, KEY: apiKey } = process.env;
const model = new ChatOpenAI({ model: "agent", apiKey, configuration: { baseURL }, maxRetries: 0 });
const asked = (content) => [new HumanMessage("My dog is Rex."), new AIMessage("Noted."), new HumanMessage(content)];

const whole = await model.invoke(asked("Who is Rex?"));
let streamed;
for await (const chunk of await model.stream(asked("Look."))) streamed = streamed?.concat(chunk) ?? chunk;
let calls = 0;
const own = tool(() => ++calls, { name: "own", description: "Its own.", schema: z.object({}) });
const loop = await model.bindTools([own]).invoke(asked("Now."));
const failure = await model.invoke(asked("Fail.")).catch(({ status }) => status);
const thoughts = streamed.additional_kwargs.reasoning_content ?? null;
const tokens = streamed.usage_metadata?.total_tokens;
const said = { whole: whole.text, streamed: streamed.text, loop: loop.text };
console.log(JSON.stringify({ ...said, thoughts, tokens, calls: calls + loop.tool_calls.length, failure }));
