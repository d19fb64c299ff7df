/** The Vercel AI SDK's `streamText` on bare `node:http`. It has nothing for sockets. */

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, streamText } from "ai";
import { BASE_URL, frame } from "./common.mjs";
import { servePlain } from "./plain-http.mjs";

const provider = createOpenAICompatible({ name: "bench", baseURL: BASE_URL, apiKey: "none" });

function request({ message, attachments = [] }, abortSignal) {
  const pictures = attachments.map(({ mime_type, data }) => ({
    type: "image",
    image: data,
    mediaType: mime_type,
  }));
  const content = [{ type: "text", text: message }, ...pictures];
  return {
    model: provider("bench"),
    messages: [{ role: "user", content }],
    abortSignal,
    maxRetries: 0,
  };
}

async function stream(body, line, signal) {
  let said = "";
  // Without this it writes every abort to stderr.
  const { textStream } = streamText({ ...request(body, signal), onError: () => {} });
  for await (const delta of textStream) {
    said += delta;
    line.write("token", delta);
  }
  if (!signal.aborted) line.write("done", said);
}

async function whole(body, signal) {
  return (await generateText(request(body, signal))).text;
}

servePlain({ stream, whole }, { response: (res) => ({ write: (type, data) => res.write(frame(type, data)) }) });
