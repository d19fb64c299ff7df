/** The hand-written way to ask the model: `node:http`, and a loop over the lines of what comes back. */

import { Agent, request } from "node:http";
import { BASE_URL, modelRequest } from "./common.mjs";

const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
const url = new URL(`${BASE_URL}/chat/completions`);

function ask(body, stream, signal) {
  return new Promise((resolve, reject) => {
    const text = JSON.stringify(modelRequest(body, stream));
    const headers = {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(text),
    };
    const req = request(url, { method: "POST", agent, headers }, resolve);
    const abort = () => req.destroy(signal.reason);
    signal.addEventListener("abort", abort);
    req.on("close", () => signal.removeEventListener("abort", abort));
    req.on("error", reject);
    req.end(text);
  });
}

/** Parses each line and writes one event for each token. */
export async function stream(body, line, signal) {
  const answer = await ask(body, true, signal);
  answer.setEncoding("utf8");
  await new Promise((resolve, reject) => {
    let rest = "";
    let said = "";
    answer.on("data", (piece) => {
      const text = rest + piece;
      let from = 0;
      for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", from)) {
        const data = text.startsWith("data: ", from) ? text.slice(from + 6, at) : "";
        from = at + 1;
        if (data === "" || data === "[DONE]") continue;
        const delta = JSON.parse(data).choices[0]?.delta.content;
        if (delta === undefined) continue;
        said += delta;
        line.write("token", delta);
      }
      rest = text.slice(from);
    });
    answer.on("end", () => {
      line.write("done", said);
      resolve();
    });
    answer.on("error", reject);
  });
}

export async function whole(body, signal) {
  const answer = await ask(body, false, signal);
  let text = "";
  answer.setEncoding("utf8");
  for await (const piece of answer) text += piece;
  return JSON.parse(text).choices[0].message.content;
}
