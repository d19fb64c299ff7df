import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { brotliCompressSync, gzipSync } from "node:zlib";
import type { Exchange } from "./exchange.ts";

/** A file that is served from memory, in each coding that was prepared. */
export interface StaticFile {
  readonly contentType: string;
  readonly etag: string;
  /** By `Content-Encoding`, best first; "identity" is always there. */
  readonly codings: ReadonlyMap<string, Buffer>;
}

/** Reads a built file and its precompressed siblings, once, at the start. */
export function readStaticFile(path: string, contentType: string): StaticFile {
  const codings = new Map<string, Buffer>();
  if (existsSync(`${path}.br`)) codings.set("br", readFileSync(`${path}.br`));
  if (existsSync(`${path}.gz`)) codings.set("gzip", readFileSync(`${path}.gz`));
  codings.set("identity", readFileSync(path));
  return { contentType, etag: etagOf(codings), codings };
}

/** For a page that is filled in at the start. */
export function staticText(text: string, contentType: string): StaticFile {
  const bytes = Buffer.from(text);
  const codings = new Map([
    ["br", brotliCompressSync(bytes)],
    ["gzip", gzipSync(bytes, { level: 9 })],
    ["identity", bytes],
  ]);
  return { contentType, etag: etagOf(codings), codings };
}

function etagOf(codings: ReadonlyMap<string, Buffer>): string {
  const hash = createHash("sha256").update(codings.get("identity") ?? "");
  // Weak, because the same tag stands for every coding (RFC 9110, 8.8.1).
  return `W/"${hash.digest("base64url").slice(0, 22)}"`;
}

/** Answers with the file, or with 304 when the client has it. */
export function sendStaticFile(
  { req, res }: Exchange,
  file: StaticFile,
  headers: Readonly<Record<string, string>>,
): void {
  res.appendHeader("vary", "accept-encoding");
  // Compared without W/, as RFC 9110, 13.1.2 has it: a proxy may have dropped it.
  const known = (req.headers["if-none-match"] ?? "").split(",").map(opaqueTag);
  if (known.includes(opaqueTag(file.etag)) || known.includes("*")) {
    res.writeHead(304, { etag: file.etag, ...headers }).end();
    return;
  }
  const [coding, bytes] = choose(file, req.headers["accept-encoding"]);
  res.writeHead(200, {
    "content-type": file.contentType,
    "content-length": bytes.length,
    etag: file.etag,
    ...(coding === "identity" ? {} : { "content-encoding": coding }),
    ...headers,
  });
  res.end(bytes);
}

function opaqueTag(etag: string): string {
  return etag.trim().replace(/^W\//, "");
}

/** The best prepared coding that the client takes; `q=0` means that it does not (RFC 9110, 12.5.3). */
function choose(file: StaticFile, accept: unknown): [string, Buffer] {
  const offers = typeof accept === "string" ? accept.toLowerCase().split(",") : [];
  const taken = new Set(
    offers
      .map((offer) => offer.split(";").map((part) => part.trim()))
      .filter(([, quality = ""]) => !/^q=0(?:\.0*)?$/.test(quality))
      .map(([coding = ""]) => coding),
  );
  for (const entry of file.codings) {
    if (entry[0] === "identity" || taken.has(entry[0])) return entry;
  }
  throw new Error("a static file has no identity coding");
}
