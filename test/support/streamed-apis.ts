/** The four streamed APIs that Parley speaks, each with one recorded answer. */

import type { Provider, TransportLimits } from "../../server/providers/provider.ts";
import { claude } from "./anthropic.ts";
import { bedrock, EVENT_STREAM, encodeFrame, fixtureFrames } from "./bedrock.ts";
import { chatProvider, responsesProvider } from "./upstream-conversation.ts";
import { fixture } from "./upstream-server.ts";

export interface StreamedApi {
  readonly name: string;
  readonly contentType: string;
  /** The bytes of the fixture of this API with this name. */
  bytes(name: string): Buffer;
  /** How many of the bytes hold the first piece of the text and nothing that is begun only. */
  startOf(bytes: Buffer): number;
  /** How many of the bytes of a text hold all that the model says, with the reason why it ended. */
  finishOf(bytes: Buffer): number;
  /** A text, and calls of tools. */
  readonly fixtures: { readonly text: string; readonly calls: string };
  provider(upstream: { readonly url: string }, limits: TransportLimits): Provider | Promise<Provider>;
}

const SSE = "text/event-stream";
/** Without the comments that name the source. */
const sse = (folder: string) => (name: string) => Buffer.from(fixture(`${folder}/${name}`).replace(/^:.*\n+/gm, ""));

/** Up to the first event that has this in it. */
const eventWith = (mark: string) => (bytes: Buffer) => bytes.indexOf("\n\n", bytes.indexOf(mark)) + 2;

export const STREAMED_APIS: readonly StreamedApi[] = [
  {
    name: "responses",
    contentType: SSE,
    bytes: sse("responses"),
    startOf: eventWith("response.output_text.delta"),
    finishOf: eventWith("response.completed"),
    fixtures: { text: "text", calls: "reasoning-and-two-calls" },
    provider: (upstream, limits) => responsesProvider(upstream, { limits }),
  },
  {
    name: "chat completions",
    contentType: SSE,
    bytes: sse("chat-completions"),
    startOf: eventWith('"content":"Hel'),
    finishOf: eventWith('"finish_reason":"stop"'),
    fixtures: { text: "text-and-usage", calls: "two-parallel-calls" },
    provider: (upstream, limits) => chatProvider(upstream, { limits }),
  },
  {
    name: "anthropic",
    contentType: SSE,
    bytes: sse("anthropic"),
    startOf: eventWith("text_delta"),
    finishOf: eventWith('"stop_reason":"end_turn"'),
    fixtures: { text: "text", calls: "parallel-tools" },
    provider: (upstream, limits) => claude(upstream, { limits }),
  },
  {
    name: "bedrock",
    contentType: EVENT_STREAM["content-type"],
    bytes: (name) => Buffer.concat(fixtureFrames(name).map(encodeFrame)),
    startOf: endOfFrameWith('"Hel'),
    finishOf: endOfFrameWith("messageStop"),
    fixtures: { text: "text", calls: "two-parallel-calls" },
    provider: (upstream, limits) => bedrock(upstream, { limits }),
  },
];

function endOfFrameWith(mark: string) {
  return (bytes: Buffer): number => {
    const found = bytes.indexOf(mark);
    let end = 0;
    while (end <= found) end += bytes.readUInt32BE(end);
    return end;
  };
}
