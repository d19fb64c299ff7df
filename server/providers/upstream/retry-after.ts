/** Whole seconds that `Retry-After` (or OpenAI's finer `retry-after-ms`) asks to wait; it may name a date. */
export function readRetryAfter(headers: Headers, now = Date.now()): number | undefined {
  const milliseconds = headers.get("retry-after-ms")?.trim();
  if (milliseconds && /^\d+(\.\d+)?$/.test(milliseconds)) return Math.ceil(Number(milliseconds) / 1000);
  // A LiteLLM proxy hands its provider's headers on under this prefix.
  const given = headers.get("retry-after") ?? headers.get("llm_provider-retry-after");
  const value = given?.trim();
  if (!value) return undefined;
  if (/^\d+(\.\d+)?$/.test(value)) return Math.ceil(Number(value));
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, Math.ceil((date - now) / 1000));
}
