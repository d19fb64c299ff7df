/** What Anthropic's refusals say only in their sentences, brought to the fields that ours are chosen by. */

import { UpstreamRefusal } from "../upstream/refusal.ts";

/** Rethrows; completes the detail of a refusal first. */
export function explainRefusal(error: unknown): never {
  if (error instanceof UpstreamRefusal && error.detail.param === "") {
    const { detail } = error;
    // "messages.1.content.0: ...", "max_tokens: ...", "thinking.enabled.budget_tokens: ..."
    detail.param = /^([a-z_]+)(?:\.[\w.]+)?: /.exec(detail.text)?.[1] ?? quotedSetting(detail.text);
    if (/credit balance/i.test(detail.text)) detail.code = "insufficient_quota";
    if (/content filtering policy/i.test(detail.text)) detail.code = "content_filter";
    if (/exceed context limit/i.test(detail.text)) detail.code = "context_length_exceeded";
  }
  throw error;
}

/** `"thinking.type.enabled" is not supported for this model`, `` `temperature` is deprecated ``. */
function quotedSetting(text: string): string {
  return /^["`]([a-z_]+)[\w.]*["`] (?:is|may|must|cannot)\b/.exec(text)?.[1] ?? "";
}

/** Whether a thinking block that went back is the reason: changed, moved, foreign, or out of its place. */
export function refusesThinking(cause: unknown): boolean {
  const text = badRequest(cause);
  return /signature|cannot be modified|bound to/i.test(text) && /thinking/i.test(text);
}

/** Whether a turn that the model is to go on with lacks the thinking it must begin with. */
export function wantsThinking(cause: unknown): boolean {
  return /expected `?thinking`?|must (?:start|begin) with a `?thinking`? block/i.test(badRequest(cause));
}

function badRequest(cause: unknown): string {
  return cause instanceof UpstreamRefusal && cause.status === 400 ? cause.detail.text : "";
}
