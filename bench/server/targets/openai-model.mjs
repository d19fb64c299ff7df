/** The usual way to ask the model: the `openai` package, and a loop over its stream. */

import OpenAI from "openai";
import { BASE_URL, modelRequest } from "./common.mjs";

const client = new OpenAI({ baseURL: BASE_URL, apiKey: "none" });

export async function stream(body, line, signal) {
  let said = "";
  const chunks = await client.chat.completions.create(modelRequest(body, true), { signal });
  for await (const chunk of chunks) {
    const delta = chunk.choices[0]?.delta.content;
    if (!delta) continue;
    said += delta;
    // A line that has to be waited for says so with a promise.
    const written = line.write("token", delta);
    if (written instanceof Promise) await written;
  }
  await line.write("done", said);
}

export async function whole(body, signal) {
  const answer = await client.chat.completions.create(modelRequest(body, false), { signal });
  return answer.choices[0].message.content;
}
