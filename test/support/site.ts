/** A web site whose pages have another origin than the chat server. */

import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { atEnd, type TestEnd } from "./at-end.ts";

/** A page's HTML, optionally with response headers. */
export type SitePage = string | { html: string; headers: Record<string, string> };

export interface Site {
  /** Origin on a loopback address, without a trailing slash. */
  readonly url: string;
  /** The same site under a non-loopback name: all names under `.example` resolve to this machine. */
  readonly publicUrl: string;
}

/** Serves the pages by path on a free port until the end of the test. */
export async function startSite(t: TestEnd, pages: Record<string, SitePage>): Promise<Site> {
  const server = createServer(({ url }, res) => {
    const page = Object.hasOwn(pages, url ?? "") ? pages[url ?? ""] : undefined;
    if (page === undefined) {
      // Browsers request an icon on their own; a 404 would be an error in the console.
      res.writeHead(url === "/favicon.ico" ? 204 : 404).end();
      return;
    }
    const { html, headers } = typeof page === "string" ? { html: page, headers: {} } : page;
    res.writeHead(200, { "content-type": "text/html; charset=utf-8", ...headers }).end(html);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  atEnd(t, () => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, publicUrl: `http://shop.example:${port}` };
}

/** A plain page with a body. `lang`: language tag of the page. */
export function sitePage(body: string, head = "", lang = "en"): string {
  return `<!doctype html><html lang="${lang}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Shop</title>${head}</head><body><main><h1>Shop</h1><p>Flowers for sale.</p></main>${body}</body></html>`;
}
