/** The chat page and the scripts for other sites, from the folder of the built widget. */

import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import type { CheckedPage } from "../agent/owners-page.ts";
import type { AgentRuntime, ServedAgent } from "../agent/served-agent.ts";
import type { Origins } from "../auth/origins.ts";
import type { Settings } from "../config/settings.ts";
import type { RequestContext } from "../http/request.ts";
import { ApiError } from "../protocol/errors.ts";

const HTML = "text/html; charset=utf-8";
const SCRIPT = "text/javascript; charset=utf-8";
const SVG = "image/svg+xml";
const SOURCE_MAP = "application/json; charset=utf-8";

/** Scripts run on the pages of other sites. */
const FOR_ANY_SITE = { "cross-origin-resource-policy": "cross-origin", "access-control-allow-origin": "*" };

/** Browsers always revalidate it: an older script would name chunks that an upgraded server no longer has. */
const SCRIPT_HEADERS = { "cache-control": "no-cache", ...FOR_ANY_SITE };

/** The name of a chunk contains a hash of its content, so a browser never has to ask again. */
const CHUNK_HEADERS = { "cache-control": "public, max-age=31536000, immutable", ...FOR_ANY_SITE };

/** Placeholder in the built `/widget.js` for the attributes of the launcher's button that an agent's owner has set. */
const BUTTON = "PARLEY_BUTTON={}";

/** The chat page, completed with data about its agent. */
interface Pages {
  data: string;
  page: StaticFile;
  embed: StaticFile;
  /** Hashes for the Content Security Policy of both pages, which have the same style sheet. */
  styles: string;
}

export interface Site {
  pagesOf(served: ServedAgent, data: string): Pages;
  /** Makes `/widget.js` and the images of the current agent, if its owner has set how the chat looks. */
  own(page: CheckedPage | undefined): void;
  /** Scripts, their source maps and these images, by path. A requested path is never used as a file name. */
  scripts: ReadonlyMap<string, StaticFile>;
}

/** The files of one build. */
interface BuiltFiles {
  page: string;
  embed: string;
  scripts: ReadonlyMap<string, StaticFile>;
}

/** The files of each folder that was read. Servers in one process share them: with source maps, they are megabytes. */
const builds = new Map<string, BuiltFiles>();

/** Reads all files at once, so that a script never names chunks of another build. */
function readBuiltFiles(folder: string): BuiltFiles {
  const [page = "", embed = ""] = ["page.html", "embed.html"].map((name) => readFileSync(join(folder, name), "utf8"));
  const chunks = readdirSync(join(folder, "chunks")).map((name) => `chunks/${name}`);
  // A package from a registry has no source maps.
  const built = ["widget.js", "widget.js.map", ...chunks].filter((path) => existsSync(join(folder, path)));
  const scripts = new Map<string, StaticFile>();
  for (const path of built) {
    const type = path.endsWith(".map") ? SOURCE_MAP : SCRIPT;
    if (/\.js(?:\.map)?$/.test(path)) scripts.set(`/${path}`, readStaticFile(join(folder, path), type));
  }
  return { page, embed, scripts };
}

export function loadSite(folder: string): Site {
  const files = builds.get(folder) ?? readBuiltFiles(folder);
  builds.set(folder, files);
  const { page, embed, scripts } = files;
  const styles = styleHashes(page);
  let pages: Pages | undefined;
  return {
    scripts,
    pagesOf({ agent, page: own }, data) {
      if (pages?.data !== data) {
        const texts: Record<string, string> = { title: escapeHtml(own?.title ?? agent.name), data };
        const complete = (html: string) => {
          const begun = own ? html.replace("<head>", `$&${own.head}`) : html.replace(/<link[^>]* data-owner>\s*/, "");
          const parts = own?.icons ? begun.replace(/<link rel="icon"[^>]*>/, own.icons) : begun;
          // In one pass, because an inserted name may look like another placeholder.
          const whole = parts.replace(/"?\{\{(\w+)\}\}"?/g, (_, name) => texts[name] ?? "");
          return createStaticFile(Buffer.from(whole), HTML);
        };
        pages = { data, page: complete(page), embed: complete(embed), styles };
      }
      return pages;
    },
    own(page) {
      this.scripts = page === undefined ? scripts : new Map([...scripts, ...ownedFiles(page, scripts)]);
    },
  };
}

function ownedFiles({ files, button }: CheckedPage, scripts: BuiltFiles["scripts"]): Map<string, StaticFile> {
  const images = [...files].map(([path, { type, bytes }]) => [path, describe(bytes, type)] as const);
  const widget = scripts.get("/widget.js")?.identity.toString() ?? "";
  const script = Buffer.from(widget.replace(BUTTON, () => BUTTON.replace("{}", () => button)));
  return new Map([...images, ["/widget.js", createStaticFile(script, SCRIPT)]]);
}

/**
 * JSON that the page reads from a `<script>` with data: the answer of `/api/info` except for the user, so that the first screen
 * is complete at once and nothing shifts; the other hosts from which its policy (`pageHeaders`) allows images; and the sites in
 * whose frames a key that the browser has kept opens the chat.
 */
function pageData({ info: known, authenticate }: ServedAgent, hosts: readonly string[], sites: readonly string[]) {
  const info = { ...known, ...(authenticate !== undefined && { user_pending: true }) };
  const data = JSON.stringify({ info, images: hosts.length > 0 ? hosts : "none", sites });
  return data.replace(/[<\u2028\u2029]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** `GET /`: the chat page; `embed=1` is for a frame on another site. */
export const page =
  ({ runtime, site, origins, settings }: { runtime: AgentRuntime; site: Site; origins: Origins; settings: Settings }) =>
  (context: RequestContext): void => {
    const { current } = runtime;
    origins.refuseRebound(context.req.headers);
    const { page, embed, styles } = site.pagesOf(current, pageData(current, settings.imageHosts, origins.named));
    const isEmbedded = context.query.get("embed") === "1";
    const ancestors = isEmbedded ? origins.frameAncestors(current.authenticate !== undefined) : "'self'";
    const headers = pageHeaders(styles, ancestors, settings.imageHosts);
    sendStaticFile(context, isEmbedded ? embed : page, headers);
  };

/** `GET /widget.js` and similar: open, because a script tag cannot send a header. They contain no secret. */
export const script =
  ({ site }: { site: Site }) =>
  (context: RequestContext): void => {
    const file = site.scripts.get(context.path);
    if (file === undefined) throw new ApiError("not_found", "There is nothing at this address.");
    const map = `${context.path}.map`;
    sendStaticFile(context, file, {
      ...(/^\/(?:chunks|chat)\//.test(context.path) ? CHUNK_HEADERS : SCRIPT_HEADERS),
      // An SVG that is opened directly would be a page of this server.
      ...(file.contentType === SVG && { "content-security-policy": "default-src 'none'; sandbox" }),
      // Relative, because a reverse proxy may serve Parley below a path.
      ...(site.scripts.has(map) && { sourcemap: map.slice(map.lastIndexOf("/") + 1) }),
    });
  };

/**
 * Only Parley's own script runs; the only inline style sheet is the one that shows the page until then; and no HTML string
 * becomes DOM: only Lit's Trusted Types policy may create markup, from the templates in the source.
 */
function pageHeaders(styles: string, frameAncestors: string, imageHosts: readonly string[]): Record<string, string> {
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' ${styles}`,
    ["img-src 'self' blob: data:", ...imageHosts.map((host) => `https://${host}`)].join(" "),
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    `frame-ancestors ${frameAncestors}`,
    "require-trusted-types-for 'script'",
    "trusted-types lit-html",
  ];
  return { "cache-control": "no-cache", "content-security-policy": policy.join("; ") };
}

const ENTITIES = new Map([
  ["&", "&amp;"],
  ["<", "&lt;"],
  [">", "&gt;"],
  ['"', "&quot;"],
]);

function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (char) => ENTITIES.get(char) ?? char);
}

/** A file that is served from memory, with an ETag and with the compressed forms that were prepared. */
interface StaticFile {
  contentType: string;
  etag: string;
  identity: Buffer;
  br?: Buffer;
  gzip?: Buffer;
}

/** Reads a built file and its compressed forms from the build. */
function readStaticFile(path: string, contentType: string): StaticFile {
  const file = describe(readFileSync(path), contentType);
  if (existsSync(`${path}.br`)) file.br = readFileSync(`${path}.br`);
  if (existsSync(`${path}.gz`)) file.gzip = readFileSync(`${path}.gz`);
  return file;
}

/** For a file that is completed or made at run time, so that the build has not compressed it. */
function createStaticFile(content: Buffer, contentType: string): StaticFile {
  const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } };
  return { ...describe(content, contentType), br: brotliCompressSync(content, quality), gzip: gzipSync(content) };
}

function describe(identity: Buffer, contentType: string): StaticFile {
  const hash = createHash("sha256").update(identity).digest("base64url").slice(0, 22);
  // Weak, because all content codings have the same tag (RFC 9110, 8.8.1).
  return { contentType, etag: `W/"${hash}"`, identity };
}

/** Answers with the file, or with 304 if the client has it. */
function sendStaticFile({ req, res }: RequestContext, file: StaticFile, headers: Record<string, string>): void {
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

/** `q=0` means that the client does not accept a coding (RFC 9110, 12.5.3). */
function acceptedCoding(file: StaticFile, header: string): "br" | "gzip" | "identity" {
  const accepted = header
    .toLowerCase()
    .split(",")
    .map((offer) => offer.split(";").map((part) => part.trim()))
    .filter(([, quality = ""]) => !/^q=0(?:\.0*)?$/.test(quality))
    .map(([coding]) => coding);
  return (["br", "gzip"] as const).find((name) => file[name] !== undefined && accepted.includes(name)) ?? "identity";
}

/** Hashes of a page's inline style sheets, as sources for its Content Security Policy. */
function styleHashes(html: string): string {
  const hashes = [...html.matchAll(/<style>([\s\S]*?)<\/style>/g)].map(([, css = ""]) =>
    createHash("sha256").update(css).digest("base64"),
  );
  return hashes.map((hash) => `'sha256-${hash}'`).join(" ");
}
