import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { ApiError } from "../protocol/api-error.ts";
import { requestIdOf } from "./exchange.ts";
import { endWithError } from "./raw-answer.ts";

/** Answers an upgrade request over plain HTTP. */
export function refuseUpgrade(req: IncomingMessage, socket: Duplex, error: ApiError): void {
  endWithError(socket, error.status, requestIdOf(req), error);
}
