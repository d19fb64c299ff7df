import { isRecord } from "../../protocol/is-record.ts";
import { text } from "../text.ts";

/** How much of a refused answer's body is read: enough to classify it, and bounded. */
export const MAX_REFUSAL_BYTES = 64 * 1024;

/** How long that may take, in milliseconds. */
export const MAX_REFUSAL_MS = 1_000;

/** Whether a `Content-Encoding` says so. We ask for none, since an event must not wait for those after it. */
export function isCompressed(contentEncoding: string | null | undefined): boolean {
  return !/^(?:identity)?$/i.test((contentEncoding ?? "").trim());
}

/** An upstream answer that is no event stream: an error status, a redirect, or a body of another kind. */
export class UpstreamRefusal extends Error {
  override readonly name = "UpstreamRefusal";
  readonly status: number;
  readonly headers: Headers;
  /** The start of the body. For the log and for classifying; never for a client. */
  readonly body: string;
  readonly detail: FailureDetail;

  constructor(status: number, headers: Headers, body: string) {
    // The package takes any error whose text holds "timed out" for a time-out: keep the body out of it.
    super(`upstream answered with HTTP status ${status}`);
    this.status = status;
    this.headers = headers;
    this.body = body;
    this.detail = readDetail(parse(body));
  }
}

/** An error object inside a stream whose HTTP status was 200. */
export class UpstreamFailure extends Error {
  override readonly name = "UpstreamFailure";
  readonly body: unknown;
  readonly detail: FailureDetail;

  constructor(body: unknown) {
    super("upstream reported an error inside the stream");
    this.body = body;
    this.detail = readDetail(body);
  }
}

/** What the various error bodies say, brought to one shape; "" where they do not say it. */
export interface FailureDetail {
  code: string;
  type: string;
  param: string;
  text: string;
}

/**
 * Reads `{error: {message, type, code, param}}` (OpenAI, LiteLLM), `{error: "..."}` (Ollama), the same
 * fields without a wrapper (vLLM), `{detail: ...}` (FastAPI), and any of them in an array (Gemini).
 */
export function readDetail(body: unknown): FailureDetail {
  const first: unknown = Array.isArray(body) ? body[0] : body;
  const outer = isRecord(first) ? first : { message: first };
  const error = outer.error ?? outer;
  const inner = isRecord(error) ? error : { message: error };
  return {
    code: typeof inner.code === "number" ? String(inner.code) : text(inner.code),
    type: text(inner.type),
    param: text(inner.param),
    text: text(inner.message) || text(inner.detail) || (JSON.stringify(inner.detail) ?? ""),
  };
}

/** Whether the upstream refused the request because of this parameter, so that it can go without. */
export function blamesParameter(cause: unknown, name: string): boolean {
  if (!(cause instanceof UpstreamRefusal)) return false;
  if (cause.status !== 400 && cause.status !== 422) return false;
  const { param, text: message } = cause.detail;
  if (param !== "") return param === name || param.startsWith(`${name}.`);
  return message.includes(name);
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    // A page of HTML or plain text: the whole of it is the message.
    return body;
  }
}
