/** `streamText` of the Vercel AI SDK on bare `node:http`. */

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, streamText } from "ai";
import { MODEL_URL, servePlain } from "../targets/relay.mjs";

const provider = createOpenAICompatible({ name: "bench", baseURL: MODEL_URL, apiKey: "none" });

function request({ message, attachments = [] }, abortSignal) {
  const pictures = attachments.map(({ mime_type, data }) => ({ type: "image", image: data, mediaType: mime_type }));
  const content = [{ type: "text", text: message }, ...pictures];
  return { model: provider("bench"), messages: [{ role: "user", content }], abortSignal, maxRetries: 0 };
}

async function stream(body, write, signal) {
  let said = "";
  // Without `onError` it writes every abort to standard error.
  const { textStream } = streamText({ ...request(body, signal), onError() {} });
  for await (const delta of textStream) {
    said += delta;
    write("token", delta);
  }
  if (!signal.aborted) write("done", said);
}

servePlain({ stream, whole: async (body, signal) => (await generateText(request(body, signal))).text });
