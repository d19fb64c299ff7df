import { type Destination, destinationOf, exchange, type StreamAnswer, streamAnswer } from "./exchange.ts";
import { requestBody } from "./request-body.ts";

/** What is the same in each request to one path: all but the body, and a key that changes. */
export interface RequestForm {
  readonly to: Destination;
  readonly headers: Readonly<Record<string, string>>;
}

/** A request as a package builds it. */
interface BuiltRequest {
  readonly url: string;
  readonly req: { readonly headers: HeadersInit };
}

/** What the package set whose names match: environment variables can add headers to all of its requests. */
export function formOf({ req, url }: BuiltRequest, sentHeaders: RegExp): RequestForm {
  const kept = [...new Headers(req.headers)].filter(([name]) => sentHeaders.test(name));
  return { to: destinationOf(url), headers: Object.fromEntries(kept) };
}

/** Posts the body as JSON, what is long in it piece by piece. @throws UpstreamRefusal where no event stream answers */
export async function sendJson(
  { to, headers }: RequestForm,
  value: unknown,
  signal: AbortSignal,
): Promise<StreamAnswer> {
  const json = requestBody(value);
  const body = json instanceof Promise ? await json : json;
  return {
    incoming: await streamAnswer(exchange(to, { method: "POST", headers, body }, signal)),
  };
}
