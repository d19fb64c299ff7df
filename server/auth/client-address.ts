/** The address of a client, as far as it can be known behind proxies. */

import { type BlockList, isIP, isIPv4 } from "node:net";
import type { Settings } from "../config/settings.ts";

export type ProxySettings = Pick<Settings, "trustedProxies" | "forwardedHeader">;

/** The most hops that are followed: a header of 16 KiB could name thousands. */
const MAX_HOPS = 32;

/**
 * The address of the connection's peer or, if the peer is a trusted proxy, the last address in its header that is not
 * one: the header is read from the right, since a client may have written the parts further left.
 */
export function clientAddress(
  peer: string | undefined,
  forwarded: string | undefined,
  { trustedProxies, forwardedHeader }: ProxySettings,
): string {
  let address = plainAddress(peer ?? "") ?? "";
  if (forwarded === undefined || !isTrusted(trustedProxies, address)) return address;
  const hops = forwardedHeader === "forwarded" ? forElements(forwarded) : forwarded.split(",");
  for (const hop of hops.slice(-MAX_HOPS).reverse()) {
    const next = plainAddress(hop);
    // "unknown", a made-up name or nonsense: nothing further left can be believed.
    if (next === undefined) return address;
    address = next;
    if (!isTrusted(trustedProxies, address)) return address;
  }
  return address;
}

export function isTrustedPeer(peer: string | undefined, { trustedProxies }: ProxySettings): boolean {
  return isTrusted(trustedProxies, plainAddress(peer ?? "") ?? "");
}

function isTrusted(trusted: BlockList, address: string): boolean {
  const version = isIP(address);
  return version !== 0 && trusted.check(address, version === 4 ? "ipv4" : "ipv6");
}

/** The `for=` of each element (RFC 7239); an element without one is "". */
function forElements(header: string): string[] {
  return header.split(",").map((element) => /(?:^|;)\s*for\s*=\s*("?)([^";,]*)\1/i.exec(element)?.[2] ?? "");
}

/** Without port, brackets and zone. An IPv4 address that a dual-stack socket has mapped to IPv6 becomes IPv4. */
function plainAddress(text: string): string | undefined {
  if (isIPv4(text)) return text;
  const bare = text.trim();
  const [, bracketed] = /^\[([^\]]*)\](?::\d+)?$/.exec(bare) ?? [];
  const [, beforePort] = /^([\d.]+):\d+$/.exec(bare) ?? [];
  const address = (bracketed ?? beforePort ?? bare).replace(/%.*$/, "").toLowerCase();
  const [, mapped] = /^::ffff:([\d.]+)$/.exec(address) ?? [];
  const plain = mapped ?? address;
  return isIP(plain) === 0 ? undefined : plain;
}

/**
 * The name by which limits count an address: IPv6 by its /64, which one customer of a provider has as a whole.
 * `undefined` for loopback addresses, which are not counted: limits must not hinder development, and all clients of a
 * local proxy that the settings do not name would count as one.
 */
export function addressGroup(address: string): string | undefined {
  const version = isIP(address);
  if (version === 0 || address === "::1" || address.startsWith("127.")) return undefined;
  return version === 6 ? `${firstFourGroups(address)}::/64` : address;
}

function firstFourGroups(address: string): string {
  const [head = "", tail] = address.split("::");
  const left = head === "" ? [] : head.split(":");
  const right = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? 0 : Math.max(8 - left.length - right.length, 0);
  const groups = [...left, ...Array<string>(zeros).fill("0"), ...right];
  return groups
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ""))
    .join(":");
}
