/** Files that are served from memory, compressed where that was prepared, with an ETag. */

import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import type { RequestContext } from "./request.ts";

export interface StaticFile {
  contentType: string;
  etag: string;
  identity: Buffer;
  br?: Buffer;
  gzip?: Buffer;
}

/** Reads a built file and what the build has compressed beside it. */
export function readStaticFile(path: string, contentType: string): StaticFile {
  const file = describe(readFileSync(path), contentType);
  if (existsSync(`${path}.br`)) file.br = readFileSync(`${path}.br`);
  if (existsSync(`${path}.gz`)) file.gzip = readFileSync(`${path}.gz`);
  return file;
}

/** For a page that is completed at the start. */
export function createStaticFile(content: Buffer, contentType: string): StaticFile {
  const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } };
  return { ...describe(content, contentType), br: brotliCompressSync(content, quality), gzip: gzipSync(content) };
}

function describe(identity: Buffer, contentType: string): StaticFile {
  const hash = createHash("sha256").update(identity).digest("base64url").slice(0, 22);
  // Weak, since the same tag stands for every coding (RFC 9110, 8.8.1).
  return { contentType, etag: `W/"${hash}"`, identity };
}

/** Answers with the file, or with 304 if the client has it. */
export function sendStaticFile({ req, res }: RequestContext, file: StaticFile, headers: Record<string, string>): void {
  res.appendHeader("vary", "accept-encoding");
  const sent = { ...headers, etag: file.etag };
  if (isKnown(file.etag, req.headers["if-none-match"])) {
    res.writeHead(304, sent).end();
    return;
  }
  const coding = acceptedCoding(file, String(req.headers["accept-encoding"] ?? ""));
  const bytes = file[coding] ?? file.identity;
  const encoded = coding === "identity" ? {} : { "content-encoding": coding };
  res.writeHead(200, { ...sent, ...encoded, "content-type": file.contentType, "content-length": bytes.length });
  res.end(bytes);
}

/** Compared without `W/` (RFC 9110, 13.1.2): a proxy may have dropped it. */
function isKnown(etag: string, condition: string | undefined): boolean {
  if (condition === undefined) return false;
  const known = condition.split(",").map(opaqueTag);
  return known.includes(opaqueTag(etag)) || known.includes("*");
}

function opaqueTag(etag: string): string {
  return etag.trim().replace(/^W\//, "");
}

/** `q=0` means that the client does not take a coding (RFC 9110, 12.5.3). */
function acceptedCoding(file: StaticFile, header: string): "br" | "gzip" | "identity" {
  const accepted = header
    .toLowerCase()
    .split(",")
    .map((offer) => offer.split(";").map((part) => part.trim()))
    .filter(([, quality = ""]) => !/^q=0(?:\.0*)?$/.test(quality))
    .map(([coding]) => coding);
  return (["br", "gzip"] as const).find((name) => file[name] !== undefined && accepted.includes(name)) ?? "identity";
}

/** The inline style sheets of a page, as sources for its Content Security Policy. */
export function styleHashes(html: string): string {
  const hashes = [...html.matchAll(/<style>([\s\S]*?)<\/style>/g)].map(([, css = ""]) =>
    createHash("sha256").update(css).digest("base64"),
  );
  return hashes.map((hash) => `'sha256-${hash}'`).join(" ");
}
