import type { ToolBlock } from "./messages.ts";

/**
 * When it is too late to decide about a call, by this device's clock. If that says it was too late when the user was
 * asked, the clock is wrong: then they may decide, and the server says whether it is too late.
 */
export function expiryOf({ approval, askedAt = 0 }: ToolBlock): number {
  const expiry = Date.parse(approval?.expires_at ?? "");
  return expiry > askedAt ? expiry : Number.POSITIVE_INFINITY;
}
