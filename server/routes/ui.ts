import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Exchange } from "../http/exchange.ts";
import { readStaticFile, sendStaticFile, staticText } from "../http/static-file.ts";
import type { Service } from "./service.ts";

const HTML = "text/html; charset=utf-8";

/** Browsers keep it for five minutes and then ask with the ETag: an upgrade of the server is seen soon. */
const WIDGET_HEADERS = {
  "cache-control": "public, max-age=300",
  "cross-origin-resource-policy": "cross-origin",
  "access-control-allow-origin": "*",
};

/** `GET /`: the chat page; `embed=1` is for a frame on another site. */
export function page(service: Service): (exchange: Exchange) => void {
  const files = {
    page: staticText(readPage(service, "page.html"), HTML),
    embed: staticText(readPage(service, "embed.html"), HTML),
  };
  const headers = {
    page: () => pageHeaders("'self'"),
    embed: () => pageHeaders(service.frameAncestors()),
  };
  return (exchange) => {
    const kind = exchange.query.get("embed") === "1" ? "embed" : "page";
    sendStaticFile(exchange, files[kind], headers[kind]());
  };
}

/** `GET /widget.js`: open, since a script tag cannot send a header; it holds no secret. */
export function widgetScript(service: Service): (exchange: Exchange) => void {
  const file = readStaticFile(
    join(service.publicFolder, "widget.js"),
    "text/javascript; charset=utf-8",
  );
  return (exchange) => sendStaticFile(exchange, file, WIDGET_HEADERS);
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
