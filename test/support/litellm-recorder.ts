/** Stands before a fake provider and keeps what it is asked, byte for byte: the fake's own journal drops attachments. */

import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { listen } from "./listen.ts";
import type { Cleanup } from "./start-server.ts";

/** A request that reached the provider. */
export interface RecordedCall {
  path: string;
  body: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads into it and fails where it is wrong.
  json: any;
}

export interface Recorder {
  /** Without a slash at the end. */
  readonly url: string;
  /** The requests since the last call of this, in order. */
  take(): RecordedCall[];
}

/** `rewrite` makes of a body what the fake can read; what is recorded is the body as it came. */
export async function startRecorder(t: Cleanup, target: string, rewrite = (body: string) => body): Promise<Recorder> {
  let calls: RecordedCall[] = [];
  const server = createServer(async (req, res) => {
    const body = Buffer.concat(await req.toArray()).toString("utf8");
    calls.push({ path: req.url ?? "", body, json: body === "" ? undefined : JSON.parse(body) });
    passOn(req, rewrite(body), res, target);
  });
  const url = await listen(t, server);
  return {
    url,
    take: () => {
      const taken = calls;
      calls = [];
      return taken;
    },
  };
}

function passOn(req: IncomingMessage, body: string, res: ServerResponse, target: string): void {
  const { method } = req;
  const headers = { ...req.headers, "content-length": String(Buffer.byteLength(body)) };
  const onward = request(new URL(req.url ?? "", target), { method, headers, agent: false });
  onward.on("response", (answer) => {
    res.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(res);
    answer.on("error", () => res.destroy());
  });
  onward.on("error", () => res.destroy());
  res.on("close", () => onward.destroy());
  onward.end(body);
}
