import { defineAgent } from "parley-agent";

interface Delta {
  content?: string;
  tool_calls?: { id?: string; function: { name: string; arguments?: string } }[];
}

/** Calls Chat Completions without a package, like the other agents' packages do. */
async function* complete(messages: object[], signal: AbortSignal): AsyncGenerator<Delta> {
  const answer = await fetch(`${process.env.OPENAI_BASE_URL}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${process.env.OPENAI_API_KEY}` },
    body: JSON.stringify({ model: "gpt-5.2", messages, stream: true }),
    signal,
  });
  if (!answer.ok || answer.body === null) throw new Error(`HTTP ${answer.status}: ${await answer.text()}`);
  let rest = "";
  for await (const text of answer.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line.startsWith("data: {")) yield JSON.parse(line.slice(6)).choices[0]?.delta ?? {};
  }
}

export default defineAgent({
  name: "Acme Support",
  async *run({ messages, signal }) {
    const calls: { id: string; function: { name: string; arguments: string } }[] = [];
    const asked: object[] = messages;
    for await (const { content, tool_calls: [piece] = [] } of complete(asked, signal)) {
      if (content) yield content;
      if (piece?.id) calls.push({ id: piece.id, function: { name: piece.function.name, arguments: "" } });
      const last = calls.at(-1);
      if (last !== undefined) last.function.arguments += piece?.function.arguments ?? "";
    }
    if (calls.length === 0) return;
    asked.push({ role: "assistant", content: null, tool_calls: calls.map((call) => ({ type: "function", ...call })) });
    for (const { id, function: called } of calls) {
      yield { type: "tool_call", data: { id, tool: called.name, arguments: called.arguments } };
      const output = JSON.stringify({ ...JSON.parse(called.arguments), status: "on its way" });
      asked.push({ role: "tool", tool_call_id: id, content: output });
      yield { type: "tool_result", data: { id, output } };
    }
    for await (const { content } of complete(asked, signal)) if (content) yield content;
  },
});
