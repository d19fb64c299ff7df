import type { IncomingMessage } from "node:http";
import { header } from "./exchange.ts";

/** What a request says of the trace that it belongs to (W3C Trace Context); as it came. */
export interface TraceHeaders {
  readonly traceparent?: string;
  readonly tracestate?: string;
}

export function traceHeadersOf(req: IncomingMessage): TraceHeaders {
  const traceparent = header(req, "traceparent");
  if (traceparent === undefined) return NONE;
  const tracestate = header(req, "tracestate");
  return tracestate === undefined ? { traceparent } : { traceparent, tracestate };
}

const NONE: TraceHeaders = {};
