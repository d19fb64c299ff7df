/** The floor: a hand-written relay that parses each line of the model's stream and writes each token on at once, with nothing around it. */

import { Agent, request } from "node:http";
import { MODEL_URL, modelRequest, servePlain } from "./relay.mjs";

const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
const url = new URL(`${MODEL_URL}/chat/completions`);

function ask(body, stream, signal) {
  return new Promise((resolve, reject) => {
    const text = JSON.stringify(modelRequest(body, stream));
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(text) };
    const req = request(url, { method: "POST", agent, headers }, (res) => {
      res.setEncoding("utf8");
      resolve(res);
    });
    const abort = () => req.destroy(signal.reason);
    signal.addEventListener("abort", abort);
    req.on("close", () => signal.removeEventListener("abort", abort));
    req.on("error", reject);
    req.end(text);
  });
}

async function stream(body, write, signal) {
  const answer = await ask(body, true, signal);
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
        write("token", delta);
      }
      rest = text.slice(from);
    });
    answer.on("end", () => {
      write("done", said);
      resolve();
    });
    answer.on("error", reject);
  });
}

async function whole(body, signal) {
  let text = "";
  for await (const piece of await ask(body, false, signal)) text += piece;
  return JSON.parse(text).choices[0].message.content;
}

servePlain({ stream, whole });
