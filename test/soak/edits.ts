/**
 * Edits an agent under `parley dev` while clients chat: no answer may be dropped, and each edit must reach an answer.
 * `npm run test:edits -- 200` makes 200 edits; the default is 10. Prints the time from an edit to the first new answer.
 */

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { readEventStream } from "../support/chat-transports.ts";
import { Command } from "../support/command.ts";

const EDITS = Number(process.argv[2] ?? 10);
const CLIENTS = 4;
const WORDS = 20;

/** A model that says its instructions and then `words` words, slowly enough for edits in between. */
const upstream = createServer(async (req, res) => {
  const { messages } = JSON.parse(Buffer.concat(await req.toArray()).toString());
  const [{ content: instructions }, question] = [messages[0], messages.at(-1)];
  const words = question.content === "Quick" ? 0 : WORDS;
  res.writeHead(200, { "content-type": "text/event-stream" });
  for (const content of [instructions, ...Array.from({ length: words }, (_, at) => ` ${at}`)]) {
    res.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`);
    if (words > 0) await delay(10);
  }
  res.end(`data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })}\n\ndata: [DONE]\n\n`);
});
upstream.listen(0, "127.0.0.1");
await once(upstream, "listening");

const folder = mkdtempSync(join(tmpdir(), "parley-edits-"));
const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
const prompt = (edit: number) => `export const instructions: string = "edit-${edit}.";`;
write("prompt.ts", prompt(0));
write(
  "agent.ts",
  `import { instructions } from "./prompt.ts"; export default { name: "Edited", model: "compatible/any", instructions };`,
);
const command = new Command(["dev", folder], {
  env: {
    PORT: "0",
    COMPATIBLE_BASE_URL: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`,
    PARLEY_RATE_PER_KEY: "1000000",
    PARLEY_MAX_RUNS_PER_KEY: "1000",
  },
});
const url = await command.printed("stdout", /^(http:\/\/\S+)\/#dev=\S+\n$/m);

async function ask(message: string, stream: boolean): Promise<string> {
  const response = await fetch(`${url}/api/chat`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ message, stream }),
  });
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return text;
}

let isOver = false;
let answers = 0;

/** Answers that begin before an edit and end after it must be complete and come from one agent. */
async function chat(): Promise<void> {
  const rest = Array.from({ length: WORDS }, (_, at) => ` ${at}`).join("");
  while (!isOver) {
    const last = readEventStream(await ask("Talk", true)).at(-1);
    assert.equal(last?.type, "done", JSON.stringify(last));
    assert.match(String(last?.data), new RegExp(`^edit-\\d+\\.${rest}$`));
    answers += 1;
  }
}

async function edit(number: number): Promise<number> {
  const startedAt = performance.now();
  write("prompt.ts", prompt(number));
  while (!JSON.parse(await ask("Quick", false)).response.startsWith(`edit-${number}.`)) {
    assert.ok(performance.now() - startedAt < 60_000, `edit ${number} reached no answer`);
  }
  return performance.now() - startedAt;
}

try {
  const clients = Promise.all(Array.from({ length: CLIENTS }, chat));
  const times: number[] = [];
  for (let number = 1; number <= EDITS; number++) {
    times.push(await Promise.race([edit(number), clients.then(() => assert.fail("the clients have ended"))]));
  }
  isOver = true;
  await clients;
  times.sort((a, b) => a - b);
  const at = (share: number) => Math.round(times[Math.ceil(share * times.length) - 1] ?? 0);
  console.log(
    `${EDITS} edits, ${answers} answers, none dropped. Edit to new answer: median ${at(0.5)} ms, most ${at(1)} ms.`,
  );
} finally {
  command.kill("SIGKILL");
  upstream.close();
  upstream.closeAllConnections();
  rmSync(folder, { recursive: true, force: true });
}
