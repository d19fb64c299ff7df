/** Bedrock with a scripted upstream, and AWS's event-stream framing written without AWS's own package. */

import { readFileSync } from "node:fs";
import { crc32 } from "node:zlib";
import { createBedrock } from "../../server/providers/bedrock/provider.ts";
import type { Provider } from "../../server/providers/provider.ts";
import { setupOf, type TestProvider } from "./upstream-conversation.ts";
import type { UpstreamReply, UpstreamServer } from "./upstream-server.ts";

interface TestBedrock extends TestProvider {
  env?: Record<string, string>;
}

export const CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";

/** By default Claude with a Bedrock API key. */
export function bedrock(upstream: Pick<UpstreamServer, "url">, options: TestBedrock = {}): Promise<Provider> {
  const env = {
    AWS_REGION: "us-east-1",
    AWS_BEARER_TOKEN_BEDROCK: "bedrock-api-key-test",
    // The package itself appends the path.
    BEDROCK_BASE_URL: upstream.url.replace(/\/v1$/, ""),
    ...options.env,
  };
  return createBedrock(setupOf("bedrock", env, { model: CLAUDE, ...options }));
}

/** One frame: `{"messageStart": {...}}`, or an exception, whose name ends in "Exception". */
export type Frame = Readonly<Record<string, unknown>>;

/** An answer with the frames of `test/fixtures/providers/bedrock/<name>.jsonl`. */
export function stream(name: string): UpstreamReply {
  return frames(...fixtureFrames(name));
}

/** The frames of a fixture, for tests that change or truncate them; lines that begin with "#" name the source. */
export function fixtureFrames(name: string): Frame[] {
  const url = new URL(`../fixtures/providers/bedrock/${name}.jsonl`, import.meta.url);
  const lines = readFileSync(url, "utf8").split("\n");
  return lines.filter((line) => /^[^#]/.test(line)).map((line) => JSON.parse(line) as Frame);
}

/** An answer with these frames. */
export function frames(...list: readonly Frame[]): UpstreamReply {
  return { headers: EVENT_STREAM, body: list.map(encodeFrame) };
}

export const EVENT_STREAM = { "content-type": "application/vnd.amazon.eventstream" };

/** An HTTP error response of Bedrock. */
export function refuse(status: number, type: string, message: string, headers = {}): UpstreamReply {
  return {
    status,
    headers: {
      "content-type": "application/json",
      "x-amzn-errortype": `${type}:http://x/`,
      ...headers,
    },
    body: [JSON.stringify({ message })],
  };
}

export function encodeFrame(frame: Frame): Buffer {
  const [name = "", payload] = Object.entries(frame)[0] ?? [];
  const kind = name.endsWith("Exception") ? "exception" : "event";
  const headers = { [`:${kind}-type`]: name, ":content-type": "application/json", ":message-type": kind };
  return frameOf(headers, JSON.stringify(payload));
}

/**
 * Total length, length of headers, checksum of both; headers: `others`, then strings; payload; checksum of all.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/RESTSelectObjectAppendix.html
 */
export function frameOf(strings: Record<string, string>, payload: string, others = Buffer.alloc(0)): Buffer {
  const headers = Buffer.concat([others, ...Object.entries(strings).map(([name, value]) => stringHeader(name, value))]);
  const body = Buffer.from(payload);
  const prelude = Buffer.alloc(8);
  prelude.writeUInt32BE(16 + headers.length + body.length, 0);
  prelude.writeUInt32BE(headers.length, 4);
  const message = Buffer.concat([prelude, checksum(prelude), headers, body]);
  return Buffer.concat([message, checksum(message)]);
}

function stringHeader(name: string, value: string): Buffer {
  const head = Buffer.from([name.length, ...Buffer.from(name), 7, 0, 0]);
  head.writeUInt16BE(value.length, head.length - 2);
  return Buffer.concat([head, Buffer.from(value)]);
}

function checksum(bytes: Buffer): Buffer {
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(bytes));
  return sum;
}
