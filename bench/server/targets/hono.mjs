/** Hono on Node and its helper for event streams with the `openai` package. */

import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { streamSSE } from "hono/streaming";
import { announce, encode, FILES, PORT } from "./common.mjs";
import { stream, whole } from "./openai-model.mjs";

const app = new Hono();

for (const [path, { body, headers }] of Object.entries(FILES)) {
  const all = { ...headers, "content-length": String(body.length) };
  app.get(path, (context) => context.body(body, 200, all));
}

app.post("/api/chat", async (context) => {
  const body = await context.req.json();
  if (!body.stream) {
    const response = await whole(body, context.req.raw.signal);
    return context.json({ response, state: {}, done: true });
  }
  return streamSSE(context, async (events) => {
    const gone = new AbortController();
    events.onAbort(() => gone.abort());
    const line = {
      write: (event, data) => events.writeSSE({ event, data: encode(event, data) }),
    };
    try {
      await stream(body, line, gone.signal);
    } catch (error) {
      if (!gone.signal.aborted) throw error;
    }
  });
});

const server = serve({ fetch: app.fetch, port: PORT, hostname: "127.0.0.1" }, () => announce(server));
