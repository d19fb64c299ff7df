import { withBody } from "../http/body.ts";
import type { Exchange } from "../http/exchange.ts";
import { traceHeadersOf } from "../http/trace-headers.ts";
import type { RunAccess } from "../runs/run-access.ts";
import type { MessageParser } from "./message-parser.ts";
import { answerRun, streamRun } from "./send-run.ts";
import type { Service } from "./service.ts";

/** `POST /api/chat`: one message, answered as JSON or as Server-Sent Events. */
export const chat =
  (service: Service, parser: MessageParser) =>
  async ({ req, res, caller, requestId }: Exchange): Promise<void> => {
    await service.admission.message(caller);
    if (res.destroyed) return;
    const memory = service.memory.hold();
    const release = memory.share();
    let run: RunAccess;
    let stream: boolean;
    try {
      const rules = { ...service.bodies, address: caller.address, memory };
      const parsed = await withBody(req, res, rules, (body) => parser.body(body));
      if (res.destroyed) return;
      const { run: id, request } = parsed;
      stream = parsed.stream;
      const resumable = stream && id !== undefined;
      const transport = stream ? "sse" : "json";
      const trace = traceHeadersOf(req);
      // Spelled out, as in `chat-socket.ts`.
      run = await service.runs.open({
        caller,
        requestId,
        trace,
        transport,
        request,
        memory,
        id,
        resumable,
      });
    } finally {
      // A run that was started shares it.
      release();
    }
    if (stream) await streamRun(res, run, 0, service);
    else await answerRun(res, run, service);
  };
