import type { Exchange } from "../http/exchange.ts";
import { ApiError } from "../protocol/api-error.ts";
import type { Service } from "./service.ts";

/** `GET /metrics`: what Prometheus collects. */
export const metrics =
  (service: Service) =>
  ({ res }: Exchange): void => {
    if (service.metrics === undefined) {
      throw new ApiError("not_found", "Metrics are switched off (PARLEY_METRICS).");
    }
    const { text, type } = service.metrics();
    const body = Buffer.from(text);
    res.writeHead(200, {
      "content-type": type,
      "content-length": body.length,
      "cache-control": "no-store",
    });
    res.end(body);
  };
