import type { OpenTelemetry } from "./observe/trace-run.ts";

/** How long spans that wait may take to leave when the server closes, in milliseconds. */
const FLUSH_MS = 5_000;

/** Sends what an SDK still holds: the process ends with the server. Never rejects. */
export async function flushSpans(api: OpenTelemetry | undefined): Promise<void> {
  const provider: unknown = api?.trace.getTracerProvider();
  const held = hasDelegate(provider) ? provider.getDelegate() : provider;
  if (!canFlush(held)) return;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, FLUSH_MS);
  });
  // A collector that is away is the business of the SDK, which reports it.
  await Promise.race([held.forceFlush().catch(() => {}), late]);
  clearTimeout(timer);
}

/** Whether a provider of tracers may stand for another one. */
export function hasDelegate(provider: unknown): provider is { getDelegate(): unknown } {
  return hasMethod(provider, "getDelegate");
}

function canFlush(provider: unknown): provider is { forceFlush(): Promise<unknown> } {
  return hasMethod(provider, "forceFlush");
}

function hasMethod(value: unknown, name: string): boolean {
  return typeof Object(value)[name] === "function";
}
