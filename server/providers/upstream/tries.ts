import type { ProviderError } from "../failures/provider-error.ts";
import type { ProviderTimes } from "../provider.ts";
import { UpstreamLine } from "./line.ts";
import { type RetryClock, realRetryClock, retryDelay } from "./retry.ts";

/** How often one turn's request may be sent in another form, each because of a refusal. */
const MAX_FORMS = 8;

export interface TryOptions {
  times: ProviderTimes;
  clock?: RetryClock | undefined;
  /** The failure as a client may see it. */
  explain(cause: unknown): ProviderError;
  /** Told that the upstream refused the request; `true` when the next try will send another one. */
  adapt(failure: ProviderError): boolean;
}

/** What a try opened, and the line that it did so on: to be closed in the end. */
export interface Opened<Stream> {
  line: UpstreamLine;
  stream: Stream;
}

/**
 * Tries until `open` succeeds, each time on a line of its own. It must not return before there is a first
 * event: up to then another try cannot be noticed. Throws `ProviderError`, or the signal's reason.
 */
export async function tryToOpen<Stream>(
  open: (line: UpstreamLine) => Promise<Stream>,
  { times, clock = realRetryClock, explain, adapt }: TryOptions,
  signal: AbortSignal,
): Promise<Opened<Stream>> {
  const deadline = performance.now() + times.firstChunk;
  let forms = 1;
  for (let tried = 1; ; tried++) {
    signal.throwIfAborted();
    const line = new UpstreamLine(times, deadline, signal);
    try {
      return { line, stream: await open(line) };
    } catch (error) {
      line.close();
      signal.throwIfAborted();
      const failure = explain(error);
      if (forms < MAX_FORMS && adapt(failure)) {
        forms++;
        continue;
      }
      const delay = retryDelay(failure, tried, clock.random);
      if (delay === undefined || performance.now() + delay >= deadline) throw failure;
      await clock.wait(delay, signal);
    }
  }
}
