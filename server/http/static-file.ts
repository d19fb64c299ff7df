import { existsSync, readFileSync } from "node:fs";
import { crypto } from "../node/crypto.ts";
import type { Exchange } from "./exchange.ts";
import { setHeaders } from "./respond.ts";

/** A file that is served from memory, in each coding that was prepared. */
export interface StaticFile {
  readonly etag: string;
  /** By `Content-Encoding`, best first; "identity" is always there. */
  readonly codings: ReadonlyMap<string, Coded>;
}

/** The bytes of one coding, and the headers that say what they are. */
interface Coded {
  readonly bytes: Buffer;
  readonly headers: Readonly<Record<string, string | number>>;
}

/** Reads a built file and its precompressed siblings, once, at the start. */
export function readStaticFile(path: string, contentType: string): StaticFile {
  const codings = new Map<string, Buffer>();
  if (existsSync(`${path}.br`)) codings.set("br", readFileSync(`${path}.br`));
  if (existsSync(`${path}.gz`)) codings.set("gzip", readFileSync(`${path}.gz`));
  codings.set("identity", readFileSync(path));
  return staticFile(codings, contentType);
}

/** For a page that is filled in at the start. */
export function staticText(text: string, contentType: string): StaticFile {
  const bytes = Buffer.from(text);
  // Not imported: a start would wait for it.
  const { brotliCompressSync, gzipSync } = process.getBuiltinModule("node:zlib");
  const codings = new Map([
    ["br", brotliCompressSync(bytes)],
    ["gzip", gzipSync(bytes, { level: 9 })],
    ["identity", bytes],
  ]);
  return staticFile(codings, contentType);
}

function staticFile(prepared: ReadonlyMap<string, Buffer>, contentType: string): StaticFile {
  const etag = etagOf(prepared);
  const codings = new Map<string, Coded>();
  for (const [coding, bytes] of prepared) {
    const headers = { "content-type": contentType, "content-length": bytes.length, etag };
    const encoding = coding === "identity" ? {} : { "content-encoding": coding };
    codings.set(coding, { bytes, headers: { ...headers, ...encoding } });
  }
  return { etag, codings };
}

function etagOf(codings: ReadonlyMap<string, Buffer>): string {
  const hash = crypto()
    .createHash("sha256")
    .update(codings.get("identity") ?? "");
  // Weak, because the same tag stands for every coding (RFC 9110, 8.8.1).
  return `W/"${hash.digest("base64url").slice(0, 22)}"`;
}

/** How a Content Security Policy allows the inline style sheet of a page, and no other one. A page without one has none. */
export function styleSource(html: string): string {
  const [, style] = /<style>([^<]*)<\/style>/.exec(html) ?? [];
  if (style === undefined) return "";
  return `'sha256-${crypto().createHash("sha256").update(style).digest("base64")}'`;
}

/** Answers with the file, or with 304 when the client has it. */
export function sendStaticFile(
  { req, res }: Exchange,
  file: StaticFile,
  headers: Readonly<Record<string, string>>,
): void {
  res.appendHeader("vary", "accept-encoding");
  setHeaders(res, headers);
  if (isKnown(file.etag, req.headers["if-none-match"])) {
    res.writeHead(304, { etag: file.etag }).end();
    return;
  }
  const coded = choose(file, req.headers["accept-encoding"] ?? "");
  setHeaders(res, coded.headers);
  res.end(coded.bytes);
}

/** Compared without W/, as RFC 9110, 13.1.2 has it: a proxy may have dropped it. */
function isKnown(etag: string, condition: string | undefined): boolean {
  if (condition === undefined || condition === etag) return condition === etag;
  const known = condition.split(",").map(opaqueTag);
  return known.includes(opaqueTag(etag)) || known.includes("*");
}

function opaqueTag(etag: string): string {
  return etag.trim().replace(/^W\//, "");
}

/** The best prepared coding that the client takes. */
function choose({ codings }: StaticFile, accept: string | string[]): Coded {
  const taken = codingsOf(String(accept));
  for (const [coding, coded] of codings) {
    if (coding === "identity" || taken.has(coding)) return coded;
  }
  throw new Error("a static file has no identity coding");
}

/** What a header says, for the few that browsers send; who sends others has them read each time. */
const read = new Map<string, ReadonlySet<string>>();
const MOST_READ = 32;

/** The codings that `Accept-Encoding` names; `q=0` means that the client does not take one (RFC 9110, 12.5.3). */
function codingsOf(accept: string): ReadonlySet<string> {
  const known = read.get(accept);
  if (known !== undefined) return known;
  const taken = new Set(
    accept
      .toLowerCase()
      .split(",")
      .map((offer) => offer.split(";").map((part) => part.trim()))
      .filter(([, quality = ""]) => !/^q=0(?:\.0*)?$/.test(quality))
      .map(([coding = ""]) => coding),
  );
  if (read.size < MOST_READ) read.set(accept, taken);
  return taken;
}
