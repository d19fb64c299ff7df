import type { Exchange } from "../http/exchange.ts";
import { ApiError } from "../protocol/api-error.ts";
import type { Service } from "./service.ts";

/** `GET /metrics`: what Prometheus collects. */
export const metrics =
  (service: Service) =>
  async ({ res }: Exchange): Promise<void> => {
    if (service.metrics === undefined) {
      throw new ApiError("not_found", "Metrics are switched off (PARLEY_METRICS).");
    }
    const body = Buffer.from(await service.metrics());
    if (res.destroyed) return;
    res.writeHead(200, {
      "content-type": "text/plain; version=0.0.4; charset=utf-8",
      "content-length": body.length,
      "cache-control": "no-store",
    });
    res.end(body);
  };
