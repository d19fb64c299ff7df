/** What Parley must know of a model on Bedrock, read from its identifier. */

/**
 * The makers whose models differ in what they take. An ARN that names no model, as one of an application
 * inference profile, is "other".
 */
export type BedrockFamily =
  | { maker: "claude"; tier: string; version: number }
  | { maker: "nova"; version: number }
  | { maker: "gpt-oss" | "kimi" | "mistral" | "other" };

/** Reads identifiers such as "us.anthropic.claude-sonnet-4-5-20250929-v1:0" and ARNs that hold one. */
export function familyOf(model: string): BedrockFamily {
  if (/\bclaude-/.test(model)) return claude(model);
  const nova = /\bamazon\.nova-(2)?/.exec(model);
  if (nova !== null) return { maker: "nova", version: nova[1] === undefined ? 1 : 2 };
  if (/\bopenai\.gpt-oss/.test(model)) return { maker: "gpt-oss" };
  if (/\bmoonshot(?:ai)?\.|\bkimi/.test(model)) return { maker: "kimi" };
  return { maker: /\bmistral\./.test(model) ? "mistral" : "other" };
}

/** "claude-3-7-sonnet-20250219" up to version 3, "claude-opus-4-6" since; dates have eight digits. */
function claude(model: string): BedrockFamily {
  const old = /claude-(\d)(?:-(\d))?-([a-z]+)/.exec(model);
  if (old !== null) return { maker: "claude", tier: old[3] ?? "", version: version(old[1], old[2]) };
  const now = /claude-([a-z]+)(?:-(\d{1,2})(?!\d))?(?:-(\d{1,2})(?!\d))?/.exec(model);
  const tier = now?.[1] ?? "";
  if (/^(?:v|instant)$/.test(tier)) return { maker: "claude", tier, version: 2 };
  // What has no number is new: "claude-mythos-preview".
  return { maker: "claude", tier, version: now?.[2] === undefined ? 5 : version(now[2], now[3]) };
}

function version(major = "0", minor = "0"): number {
  return Number(`${major}.${minor}`);
}
