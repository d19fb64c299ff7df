/** The transports of a chat with a scripted server: one of them made, and runs begun on it. */

import "./browser-globals.ts";
import type { TestContext } from "node:test";
import type { StreamEvent } from "../../server/protocol/events.ts";
import type { SocketTransport } from "../../widget/transport/socket-transport.ts";
import type { ChatTransport, Endpoint } from "../../widget/transport/transport.ts";
import { type ScriptOptions, startScriptedServer } from "./scripted-server.ts";

const http = await import("../../widget/chunks/http.ts");
const { HttpRequests } = await import("../../widget/transport/http-requests.ts");

export const NEVER = new AbortController().signal;
export const TURN = {
  run: "run-1",
  message: "Hi",
  attachments: [],
  state: { previous_response_id: "resp_1" },
};

/** As the script makes it when the chunk has come. */
export class HttpTransport extends http.HttpTransport {
  constructor(endpoint: Endpoint) {
    super(new HttpRequests(endpoint));
  }
}

export async function connect(
  t: TestContext,
  Transport: typeof SocketTransport | typeof HttpTransport,
  { givenKey, ...options }: ScriptOptions & { givenKey?: string } = {},
) {
  const server = await startScriptedServer(t, options);
  const transport = new Transport({ server: new URL(server.url), key: () => givenKey });
  t.after(() => transport.close());
  return { server, transport };
}

export async function collect(events: AsyncIterable<StreamEvent>): Promise<StreamEvent[]> {
  const collected: StreamEvent[] = [];
  for await (const event of events) collected.push(event);
  return collected;
}

let runs = 0;

/** Each start is a run of its own. */
export function start(transport: ChatTransport, signal = NEVER) {
  runs += 1;
  const events = collect(transport.run({ ...TURN, run: `run-${runs}` }, signal));
  // A test may await the server's side first.
  events.catch(() => undefined);
  return events;
}
