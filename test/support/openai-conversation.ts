/** A client of the Chat Completions door, with any version of OpenAI's package, and the results it should get. */

import type { IncomingMessage } from "node:http";
import type { OpenAI } from "openai";
import type { ChatCompletionMessageParam as Message } from "openai/resources/chat/completions";
import { KEY } from "./doors.ts";
import type { FramesOptions } from "./golden-frames.ts";

export const OPENAI_FRAMES: FramesOptions = {
  nameOf: ({ method, url }: IncomingMessage) => `${method} ${url}`,
  steady: (answer) => answer.replace(/chatcmpl-[\w-]+/g, "chatcmpl-ID").replace(/("created":)\d+/g, "$10"),
  kept: ["x-parley-ignored", "x-should-retry"],
};

interface OwnDelta {
  content?: string | null;
  reasoning_content?: string;
}

/** Lists models; requests a whole and a streamed answer, an approval, a loop with own tools, and two failures. */
export async function converse(Client: typeof OpenAI, url: string): Promise<Record<string, unknown>> {
  const client = new Client({ baseURL: `${url}/v1`, apiKey: KEY });
  const asked = (content: string) => ({ model: "agent", messages: [{ role: "user", content }] satisfies Message[] });
  const models = await client.models.list();
  const whole = await client.chat.completions.create({ ...asked("Hello."), temperature: 1, user: "u1" });
  const stream = client.chat.completions.stream({ ...asked("Look."), stream_options: { include_usage: true } });
  let thoughts = "";
  const statuses: unknown[] = [];
  for await (const chunk of stream) {
    thoughts += (chunk.choices[0]?.delta as OwnDelta | undefined)?.reasoning_content ?? "";
    if ("event" in chunk) statuses.push((chunk.event as { data: unknown }).data);
  }
  const streamed = await stream.finalChatCompletion();
  const waits = await client.chat.completions.create(asked("Pay."));
  let calls = 0;
  const own = { name: "own", description: "", parameters: { type: "object" }, function: () => String(++calls) };
  const tools = [{ type: "function" as const, function: own }];
  const loop = await client.chat.completions.runTools({ ...asked("Now."), tools, stream: true }).finalContent();
  const refused = await client.chat.completions.create(asked("Fail.")).catch(({ status, code }) => [status, code]);
  const broken = client.chat.completions.stream(asked("Break."));
  const cut = await broken.done().catch(({ message }) => message);
  return {
    models: models.data.map(({ id, object }) => [id, object]),
    whole: whole.choices.map(({ message: { content, role }, finish_reason }) => [role, content, finish_reason]),
    streamed: streamed.choices.map(({ message: { content, role }, finish_reason }) => [role, content, finish_reason]),
    thoughts,
    statuses,
    usage: [whole.usage?.total_tokens, streamed.usage?.total_tokens],
    waits: waits.choices[0]?.message.content,
    loop: [loop, calls],
    refused,
    cut,
  };
}

/** The expected results of `converse`. */
export const HEARD = {
  models: [["agent", "model"]],
  whole: [["assistant", "Hello.", "stop"]],
  streamed: [["assistant", "Let me look.\n\nIt is x.", "length"]],
  thoughts: "Hm.",
  statuses: [
    { description: "echo", done: false },
    { description: "echo", done: true },
  ],
  usage: [5, 7],
  waits: "Pay 5 euros?\n\nIt was not done: a person has to approve it, which is not possible here.",
  loop: ["Without your tools.", 0],
  refused: [502, "provider_auth"],
  cut: "No more.",
};
