import type { Exchange } from "../http/exchange.ts";
import { sendJson } from "../http/respond.ts";
import { ApiError } from "../protocol/api-error.ts";
import type { Service } from "./service.ts";

/** `GET /health`: the process serves. Stays 200 while it drains, or an orchestrator would kill it early. */
export function health({ res }: Exchange): void {
  sendJson(res, 200, { status: "ok" });
}

/** `GET /health/ready`: send new work here, or not any more. */
export const ready =
  (service: Service) =>
  ({ res }: Exchange): void => {
    if (service.runs.draining) {
      throw new ApiError("shutting_down", "The server is stopping.", { retryAfter: 1 });
    }
    sendJson(res, 200, { status: "ready" });
  };
