import net, { type BlockList, isIP } from "node:net";
import type { ForwardedHeader, ProxyPolicy } from "./limits/client-address.ts";
import { SetupError } from "./providers/failures/provider-error.ts";
import { type Environment, list } from "./read-setting.ts";

const HEADERS: readonly ForwardedHeader[] = ["x-forwarded-for", "forwarded"];

/** @throws SetupError */
export function readProxies(env: Environment): ProxyPolicy {
  const entries = list(env, "PARLEY_TRUSTED_PROXIES");
  const trusted = entries.length > 0 ? rangesOf(entries) : undefined;
  const [given = HEADERS[0]] = list(env, "PARLEY_FORWARDED_HEADER");
  const header = HEADERS.find((name) => name === given?.toLowerCase());
  if (header !== undefined) return { trusted, header };
  throw new SetupError(`PARLEY_FORWARDED_HEADER must be x-forwarded-for or forwarded, but is "${given}".`);
}

function rangesOf(entries: readonly string[]): BlockList {
  // Of its module, and not imported: Node loads it for whoever asks.
  const ranges = new net.BlockList();
  for (const entry of entries) addRange(ranges, entry);
  return ranges;
}

function addRange(trusted: BlockList, entry: string): void {
  const [address = "", prefix, ...more] = entry.split("/");
  const version = isIP(address);
  const bits = version === 4 ? 32 : 128;
  const length = prefix === undefined ? bits : Number(prefix);
  if (version === 0 || !/^\d{1,3}$/.test(prefix ?? "0") || length > bits || more.length > 0) {
    throw new SetupError(
      `PARLEY_TRUSTED_PROXIES must list addresses or ranges such as 10.0.0.0/8, but has "${entry}".`,
    );
  }
  trusted.addSubnet(address, length, version === 4 ? "ipv4" : "ipv6");
}
