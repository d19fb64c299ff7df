import { withBody } from "../http/body.ts";
import type { Exchange } from "../http/exchange.ts";
import { answerRun, streamRun } from "./send-run.ts";
import type { Service } from "./service.ts";

/** `POST /api/chat`: one message, answered as JSON or as Server-Sent Events. */
export const chat =
  (service: Service) =>
  async ({ req, res, caller, requestId }: Exchange): Promise<void> => {
    await service.admission.message(caller);
    if (res.destroyed) return;
    const rules = { ...service.bodies, address: caller.address };
    const parsed = await withBody(req, res, rules, (body) => service.parser.body(body));
    const { stream, run: id, request } = parsed;
    if (res.destroyed) return;
    const resumable = stream && id !== undefined;
    const transport = stream ? "sse" : "json";
    const order = { caller, request, id, resumable, requestId, transport } as const;
    const run = await service.runs.open(order);
    if (stream) await streamRun(res, run, 0, service);
    else await answerRun(res, run, service);
  };
