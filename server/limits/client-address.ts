/** Where a client is, seen through the proxies that the operator named. */

import { type BlockList, isIP, isIPv4 } from "node:net";

/** Which header the proxies write. Another one may come from the client itself and is not read. */
export type ForwardedHeader = "x-forwarded-for" | "forwarded";

export interface ProxyPolicy {
  /** Addresses whose word is taken; `undefined` for none. */
  readonly trusted: BlockList | undefined;
  readonly header: ForwardedHeader;
}

/** Most hops that are followed: a header of 16 KiB could name thousands. */
const MAX_HOPS = 32;

/**
 * The client's address: that of the connection or, where it comes from a trusted proxy, the last one in the
 * header that is no trusted proxy. Read from the right: whatever stands further left the client wrote itself.
 */
export function clientAddress(
  peer: string | undefined,
  forwarded: string | undefined,
  { trusted, header }: ProxyPolicy,
): string {
  let address = plainAddress(peer ?? "") ?? "";
  if (forwarded === undefined || !isTrusted(trusted, address)) return address;
  const hops = header === "forwarded" ? forElements(forwarded) : forwarded.split(",");
  for (const hop of hops.slice(-MAX_HOPS).toReversed()) {
    const next = plainAddress(hop);
    // "unknown", a made-up name or nonsense: nothing further left can be believed.
    if (next === undefined) return address;
    address = next;
    if (!isTrusted(trusted, address)) return address;
  }
  return address;
}

/** Whether a connection comes from a named proxy. */
export function isTrustedPeer(peer: string | undefined, { trusted }: ProxyPolicy): boolean {
  return isTrusted(trusted, plainAddress(peer ?? "") ?? "");
}

/** The `for=` of each element (RFC 7239); an element without one is "". */
function forElements(header: string): string[] {
  return header.split(",").map((element) => /(?:^|;)\s*for\s*=\s*("?)([^";,]*)\1/i.exec(element)?.[2] ?? "");
}

function isTrusted(trusted: BlockList | undefined, address: string): boolean {
  if (trusted === undefined) return false;
  const version = isIP(address);
  return version !== 0 && trusted.check(address, version === 4 ? "ipv4" : "ipv6");
}

/** Without port, brackets and zone, and IPv4 as IPv4 although a socket of both kinds maps it into IPv6. */
function plainAddress(text: string): string | undefined {
  // What most are.
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
 * What limits count an address by: IPv6 by its /64, since whoever has one of those addresses has all of them.
 * `undefined` for this machine's own and for none: a developer is no crowd, and a local proxy that was not
 * named would make one client of all.
 */
export function addressGroup(address: string): string | undefined {
  if (isIP(address) === 0 || address === "::1" || address.startsWith("127.")) return undefined;
  return isIP(address) === 6 ? `${expand(address).slice(0, 4).join(":")}::/64` : address;
}

/**
 * What wrong keys are counted by: as `addressGroup`, and one group for all that comes from this
 * machine or from no known address. Behind a local proxy that is not named every client comes from
 * there, and many proxies add no header that would tell. A full group refuses right keys, too: one
 * that let them in would still tell each guess whether it was right.
 */
export function guessGroup(address: string): string {
  return addressGroup(address) ?? "this machine";
}

/** The eight groups of an IPv6 address; a dotted end stands for the last two, which no /64 has. */
function expand(address: string): string[] {
  const [head = "", tail] = address.split("::");
  const left = head === "" ? [] : head.split(":");
  const right = tail === undefined || tail === "" ? [] : tail.split(":");
  const missing = tail === undefined ? 0 : 8 - left.length - right.length;
  return [...left, ...Array<string>(Math.max(missing, 0)).fill("0"), ...right].map((group) =>
    group.replace(/^0+(?=.)/, ""),
  );
}
