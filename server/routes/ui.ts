import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Exchange } from "../http/exchange.ts";
import { readStaticFile, sendStaticFile, staticText } from "../http/static-file.ts";
import type { Service } from "./service.ts";

type Handler = (exchange: Exchange) => void;

const HTML = "text/html; charset=utf-8";

const SCRIPT = "text/javascript; charset=utf-8";

/** Scripts run on the pages of other sites. */
const FOR_ANY_SITE = {
  "cross-origin-resource-policy": "cross-origin",
  "access-control-allow-origin": "*",
};

/** Always asked for with the ETag: an older script would name chunks that an upgraded server no longer has. */
const WIDGET_HEADERS = { "cache-control": "no-cache", ...FOR_ANY_SITE };

/** Its name says what is in it, so a browser never has to ask again. */
const CHUNK_HEADERS = { "cache-control": "public, max-age=31536000, immutable", ...FOR_ANY_SITE };

/** `GET /`: the chat page; `embed=1` is for a frame on another site. */
export function page(service: Service): Handler {
  const files = {
    page: staticText(readPage(service, "page.html"), HTML),
    embed: staticText(readPage(service, "embed.html"), HTML),
  };
  const own = pageHeaders("'self'");
  return (exchange) => {
    if (exchange.query.get("embed") !== "1") sendStaticFile(exchange, files.page, own);
    // Which sites may frame it can change while the server runs.
    else sendStaticFile(exchange, files.embed, pageHeaders(service.frameAncestors()));
  };
}

/** `GET /widget.js`: open, since a script tag cannot send a header; it holds no secret. */
export function widgetScript(service: Service): Handler {
  const file = readStaticFile(join(service.publicFolder, "widget.js"), SCRIPT);
  return (exchange) => sendStaticFile(exchange, file, WIDGET_HEADERS);
}

/**
 * `GET /chunks/NAME-HASH.js`: what `/widget.js` loads later. A handler for each file that is there at the start, by path, so
 * that what a client asks for never becomes the name of a file.
 */
export function chunkScripts(service: Service): Map<`/chunks/${string}`, Handler> {
  const folder = join(service.publicFolder, "chunks");
  const names = readdirSync(folder).filter((name) => name.endsWith(".js"));
  return new Map(
    names.map((name) => {
      const file = readStaticFile(join(folder, name), SCRIPT);
      return [`/chunks/${name}`, (exchange) => sendStaticFile(exchange, file, CHUNK_HEADERS)];
    }),
  );
}

function readPage(service: Service, name: string): string {
  const html = readFileSync(join(service.publicFolder, name), "utf8");
  return html.replace("{{title}}", () => escapeHtml(service.runner.agent.name));
}

/**
 * Nothing but our own script runs, and no HTML string becomes DOM: Lit's own policy is the only one that
 * may make markup, from the templates in our source.
 */
function pageHeaders(frameAncestors: string): Record<string, string> {
  return {
    "cache-control": "no-cache",
    "content-security-policy": [
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "img-src 'self' blob: data:",
      "connect-src 'self'",
      "base-uri 'none'",
      "form-action 'none'",
      `frame-ancestors ${frameAncestors}`,
      "require-trusted-types-for 'script'",
      "trusted-types lit-html",
    ].join("; "),
  };
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
