/** Where a client is: which headers of which proxies are believed, and how far. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { clientAddress } from "../../server/auth/client-address.ts";
import { readSettings } from "../../server/config/settings.ts";

const PROXIES = "10.0.0.0/8, fd00::/8, 2001:db8::1";
const XFF = readSettings({ PARLEY_TRUSTED_PROXIES: PROXIES });
const FORWARDED = readSettings({
  PARLEY_TRUSTED_PROXIES: PROXIES,
  PARLEY_FORWARDED_HEADER: "Forwarded",
});

const CASES: [name: string, peer: string, header: string | undefined, address: string][] = [
  ["no header", "10.0.0.1", undefined, "10.0.0.1"],
  ["an empty header", "10.0.0.1", "", "10.0.0.1"],
  ["a peer that is no named proxy", "203.0.113.9", "198.51.100.1", "203.0.113.9"],
  ["one hop", "10.0.0.1", "198.51.100.1", "198.51.100.1"],
  ["a proxy on a socket of both kinds", "::ffff:10.0.0.1", "198.51.100.1", "198.51.100.1"],
  ["what the client wrote itself, left", "10.0.0.1", "1.1.1.1, 198.51.100.1", "198.51.100.1"],
  ["two proxies", "10.0.0.1", "198.51.100.1, 10.0.0.2", "198.51.100.1"],
  ["proxies only", "10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"],
  ["a name in the middle", "10.0.0.1", "198.51.100.1, unknown, 10.0.0.2", "10.0.0.2"],
  ["an address with a port", "10.0.0.1", "198.51.100.1:4711", "198.51.100.1"],
  ["IPv6 in brackets with a port", "fd00::1", "[2001:DB8::2]:4711", "2001:db8::2"],
  ["IPv4 in IPv6", "2001:db8::1", "::ffff:198.51.100.1", "198.51.100.1"],
  ["half an address", "10.0.0.1", "198.51.100", "10.0.0.1"],
  ["the other header's form", "10.0.0.1", "for=198.51.100.1", "10.0.0.1"],
  ["hops without end", "10.0.0.1", `1.1.1.1${", 10.0.0.2".repeat(3000)}`, "10.0.0.2"],
];

const FORWARDED_CASES: typeof CASES = [
  ["one element", "10.0.0.1", "for=198.51.100.1", "198.51.100.1"],
  ["other fields around it", "10.0.0.1", "proto=https; For=198.51.100.1;by=10.0.0.1", "198.51.100.1"],
  ["a quoted address with a port", "10.0.0.1", 'for="[2001:db8::2]:4711"', "2001:db8::2"],
  ["two elements", "10.0.0.1", "for=1.1.1.1, for=198.51.100.1", "198.51.100.1"],
  ["a field whose name ends in for", "10.0.0.1", "x-for=1.1.1.1", "10.0.0.1"],
  ["an element without it", "10.0.0.1", "for=1.1.1.1, proto=https", "10.0.0.1"],
  ["a made-up name", "10.0.0.1", "for=1.1.1.1, for=_hidden", "10.0.0.1"],
  ["a quote that the client left open", "10.0.0.1", 'for="1.1.1.1, for=198.51.100.1', "198.51.100.1"],
  ["the other header's form", "10.0.0.1", "198.51.100.1", "10.0.0.1"],
];

for (const [header, settings, cases] of [
  ["X-Forwarded-For", XFF, CASES],
  ["Forwarded", FORWARDED, FORWARDED_CASES],
] as const) {
  for (const [name, peer, value, address] of cases) {
    test(`${header} with ${name} means ${address}`, () => {
      assert.equal(clientAddress(peer, value, settings), address);
    });
  }
}

for (const entry of [
  "proxy.local",
  "10.0.0.0/33",
  "10.0.0.0/",
  "10.0.0.0/8/8",
  "10.0.0",
  "fd00::/129",
  "/8",
  "10.0.0.0/-1",
]) {
  test(`PARLEY_TRUSTED_PROXIES with ${entry} stops the start and says so`, () => {
    assert.throws(() => readSettings({ PARLEY_TRUSTED_PROXIES: `10.0.0.1, ${entry}` }), {
      name: "ConfigError",
      message: new RegExp(`has "${entry.replaceAll(".", "\\.")}"`),
    });
  });
}
