import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.env.BASE_URL, apiKey: process.env.KEY });
const model = process.env.MODEL ?? (await client.models.list()).data[0].id;
const before = [
  { role: "user", content: "My dog is Rex." },
  { role: "assistant", content: "Noted." },
];
const asked = (content) => [...before, { role: "user", content }];

const whole = await client.chat.completions.create({ model, messages: asked("Who is Rex?") });
const stream = client.chat.completions.stream({
  model,
  messages: asked("Look."),
  stream_options: { include_usage: true },
});
let thoughts = "";
for await (const { choices } of stream) thoughts += choices[0]?.delta.reasoning_content ?? "";
const streamed = await stream.finalChatCompletion();
let calls = 0;
const own = { name: "own", parameters: { type: "object", properties: {} }, parse: JSON.parse, function: () => ++calls };
const tools = [{ type: "function", function: own }];
const loop = await client.chat.completions
  .runTools({ model, messages: asked("Now."), tools, stream: true })
  .finalContent();
const failure = await client.chat.completions.create({ model, messages: asked("Fail.") }).catch(({ status }) => status);
const tokens = streamed.usage?.total_tokens;
const said = { whole: whole.choices[0].message.content, streamed: streamed.choices[0].message.content };
console.log(JSON.stringify({ ...said, thoughts, tokens, loop, calls, failure }));
