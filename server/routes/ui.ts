import type { Exchange } from "../http/exchange.ts";
import { sendStaticFile } from "../http/static-file.ts";
import type { Service } from "./service.ts";

type Handler = (exchange: Exchange) => void;

/** Scripts run on the pages of other sites. */
const FOR_ANY_SITE = {
  "cross-origin-resource-policy": "cross-origin",
  "access-control-allow-origin": "*",
};

/** Always asked for with the ETag: an older script would name chunks that an upgraded server no longer has. */
const SCRIPT_HEADERS = { "cache-control": "no-cache", ...FOR_ANY_SITE };

/** Its name says what is in it, so a browser never has to ask again. */
const CHUNK_HEADERS = { "cache-control": "public, max-age=31536000, immutable", ...FOR_ANY_SITE };

/** `GET /`: the chat page; `embed=1` is for a frame on another site. */
export function page({ files, frameAncestors }: Service): Handler {
  let own: Record<string, string> | undefined;
  return (exchange) => {
    if (exchange.query.get("embed") !== "1") {
      own ??= pageHeaders("'self'", files.styleSource);
      sendStaticFile(exchange, files.page, own);
    } else {
      // Which sites may frame it can change while the server runs.
      const headers = pageHeaders(frameAncestors(), files.styleSource);
      sendStaticFile(exchange, files.embed, headers);
    }
  };
}

/** `GET /widget.js`: open, since a script tag cannot send a header; it holds no secret. */
export function widgetScript({ files }: Service): Handler {
  return (exchange) => sendStaticFile(exchange, files.widget, SCRIPT_HEADERS);
}

/** `GET /launcher.js`: likewise. The button alone, which loads `/widget.js` when somebody wants it. */
export function launcherScript({ files }: Service): Handler {
  return (exchange) => sendStaticFile(exchange, files.launcher, SCRIPT_HEADERS);
}

/** `GET /chunks/NAME-HASH.js`: what `/widget.js` loads later. A handler for each, by path. */
export function chunkScripts({ files }: Service): Map<`/chunks/${string}`, Handler> {
  return new Map(
    files.chunkNames.map((name) => [
      `/chunks/${name}`,
      (exchange) => sendStaticFile(exchange, files.chunk(name), CHUNK_HEADERS),
    ]),
  );
}

/**
 * Nothing but our own script runs, no inline style sheet applies but the one that shows the page until then, and no HTML
 * string becomes DOM: Lit's own policy is the only one that may make markup, from the templates in our source.
 */
function pageHeaders(frameAncestors: string, styleSource: string): Record<string, string> {
  return {
    "cache-control": "no-cache",
    "content-security-policy": [
      "default-src 'none'",
      "script-src 'self'",
      `style-src 'self' ${styleSource}`,
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
