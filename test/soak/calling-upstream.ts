/**
 * A model for the kill test, with both of OpenAI's APIs: it answers at random, and rejects requests that the API would reject
 * because a call has no result, two, or an unknown one.
 */

import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import type { ConversationState } from "../../server/protocol/chat.ts";

interface Call {
  id: string;
  name: string;
  arguments: string;
}

/** A response stored by the API: its calls without results, and all calls with one. */
interface Kept {
  waiting: ReadonlySet<string>;
  answered: ReadonlySet<string>;
}

export class CallingUpstream {
  readonly #random: () => number;
  /** All calls so far, by id. */
  readonly calls = new Map<string, Call>();
  /** Requests that the API would have rejected, with the reasons. */
  readonly refused: string[] = [];
  readonly #kept = new Map<string, Kept>();
  #requests = 0;
  readonly #server = createServer((req, res) => {
    res.on("error", () => {});
    void this.#answer(req.url ?? "", req.toArray(), res);
  });

  constructor(random: () => number) {
    this.#random = random;
  }

  async listen(): Promise<string> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  close(): void {
    this.#server.close().closeAllConnections();
  }

  /** Ids of the calls whose results a model has when it continues from this state. */
  resultsIn({
    conversation_history: history = [],
    previous_response_id: id = "",
    open,
  }: ConversationState): Set<string> {
    const kept = this.#kept.get(open?.response ?? id.split(".")[0] ?? "");
    const messages = [...history, ...(open?.messages ?? [])];
    const ids = messages.flatMap((message) => (message.role === "tool" ? [message.tool_call_id] : []));
    return new Set([...(kept?.answered ?? []), ...ids]);
  }

  async #answer(url: string, chunks: Promise<Uint8Array[]>, res: ServerResponse): Promise<void> {
    const body = JSON.parse(String(Buffer.concat(await chunks)));
    const number = ++this.#requests;
    const isResponses = url.endsWith("/responses");
    const answered = isResponses ? this.#checkInput(body) : checkMessages(body.messages);
    if (typeof answered === "string") {
      this.refused.push(`${answered}: ${JSON.stringify(body)}`);
      return void res.writeHead(400, { "content-type": "application/json" }).end("{}");
    }
    const what = this.#random();
    if (what < 0.08) {
      return void res.writeHead(500, { "content-type": "application/json", "x-should-retry": "false" }).end("{}");
    }
    const count = what < 0.55 ? 1 + Math.floor(this.#random() * 3) : 0;
    const calls = Array.from({ length: count }, (_, index) => this.#call(`call_${number}_${index}`));
    const isCut = this.#random() < 0.1;
    const write = isResponses ? new Responses(`resp_${number}`) : new ChatCompletions();
    res.writeHead(200, { "content-type": "text/event-stream" });
    for (const word of ["So ", "it ", `is ${number}.`]) {
      res.write(write.text(word));
      await pause(this.#random() * 8);
    }
    if (what > 0.95) return void res.end();
    // Before the end is written, because its reader may continue at once.
    if (isResponses) {
      const waiting = calls.map(({ id }) => id);
      this.#kept.set(`resp_${number}`, { waiting: new Set(waiting), answered });
    }
    res.end(write.end(calls, isCut));
  }

  #call(id: string): Call {
    const name = this.#random() < 0.7 ? "charge" : "look";
    const call = { id, name, arguments: JSON.stringify({ ms: Math.floor(this.#random() * 60) }) };
    this.calls.set(id, call);
    return call;
  }

  // biome-ignore lint/suspicious/noExplicitAny: what the server sends is what is tested.
  #checkInput({ input, previous_response_id: previous }: any): Set<string> | string {
    const kept = previous === undefined ? undefined : this.#kept.get(previous);
    if (previous !== undefined && kept === undefined) return `no response ${previous}`;
    const waiting = new Set(kept?.waiting);
    const answered = new Set(kept?.answered);
    for (const { type, call_id } of input) {
      if (type !== "function_call_output") continue;
      if (!waiting.delete(call_id)) return `${call_id} has no call, or two results`;
      answered.add(call_id);
    }
    return waiting.size === 0 ? answered : `${[...waiting]} have no result`;
  }
}

// biome-ignore lint/suspicious/noExplicitAny: what the server sends is what is tested.
function checkMessages(messages: any[]): Set<string> | string {
  const answered = new Set<string>();
  let waiting = new Set<string>();
  for (const { role, tool_calls = [], tool_call_id } of messages) {
    if (role === "tool") {
      if (!waiting.delete(tool_call_id)) return `${tool_call_id} has no call, or two results`;
      answered.add(tool_call_id);
    } else if (waiting.size > 0) return `${[...waiting]} have no result`;
    if (tool_calls.length > 0) waiting = new Set(tool_calls.map(({ id }: { id: string }) => id));
  }
  return waiting.size === 0 ? answered : `${[...waiting]} have no result`;
}

const frame = (data: object) => `data: ${JSON.stringify(data)}\n\n`;

/** Both formats end at the token limit if they are cut, inside their last call. */
class ChatCompletions {
  text(content: string): string {
    return this.#chunk({ content });
  }

  end(calls: readonly Call[], isCut: boolean): string {
    const last = calls.length - 1;
    const made = calls.map(({ id, name, arguments: args }, index) => {
      const written = isCut && index === last ? args.slice(0, -1) : args;
      return this.#chunk({ tool_calls: [{ index, id, type: "function", function: { name, arguments: written } }] });
    });
    const finish = isCut ? "length" : calls.length > 0 ? "tool_calls" : "stop";
    return `${made.join("")}${this.#chunk({}, finish)}data: [DONE]\n\n`;
  }

  #chunk(delta: object, finish_reason: string | null = null): string {
    return frame({ choices: [{ index: 0, delta, finish_reason }] });
  }
}

class Responses {
  readonly #id: string;

  constructor(id: string) {
    this.#id = id;
  }

  text(delta: string): string {
    return frame({ type: "response.output_text.delta", item_id: "msg_1", delta });
  }

  end(calls: readonly Call[], isCut: boolean): string {
    const made = calls.map(({ id, name, arguments: args }, index) => {
      const status = isCut && index === calls.length - 1 ? "incomplete" : "completed";
      const item = { type: "function_call", call_id: id, name, arguments: args, status };
      return frame({ type: "response.output_item.done", item });
    });
    const response = isCut
      ? { id: this.#id, status: "incomplete", incomplete_details: { reason: "max_output_tokens" } }
      : { id: this.#id, status: "completed" };
    return `${made.join("")}${frame({ type: isCut ? "response.incomplete" : "response.completed", response })}`;
  }
}
