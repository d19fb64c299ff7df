/** The four streaming APIs that Parley supports, each with one recorded answer. */

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
  /** Number of bytes that contain exactly the first piece of the text, without a started next event. */
  startOf(bytes: Buffer): number;
  /** Number of bytes of a text answer up to and including its finish reason. */
  finishOf(bytes: Buffer): number;
  /** Names of two fixtures: a text, and tool calls. */
  readonly fixtures: { readonly text: string; readonly calls: string };
  provider(upstream: { readonly url: string }, limits: TransportLimits): Provider | Promise<Provider>;
}

const SSE = "text/event-stream";
/** Removes the comments that name the source. */
const sse = (folder: string) => (name: string) => Buffer.from(fixture(`${folder}/${name}`).replace(/^:.*\n+/gm, ""));

/** Up to and including the first event that contains `mark`. */
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
