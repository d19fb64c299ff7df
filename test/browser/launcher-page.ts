/** A site with the script tag in a real browser: with the launcher button, or with chats in its content. */

import type { TestContext } from "node:test";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { openPage } from "../support/browser.ts";
import { type Site, sitePage, startSite } from "../support/site.ts";
import { type ServerOptions, startServer, type TestServer } from "../support/start-server.ts";
import { type ChatElement, chatIn, failOnComplaints } from "./chat-page.ts";

export const PHONE: BrowserContextOptions = {
  viewport: { width: 390, height: 844 },
  hasTouch: true,
};

export interface Visit extends ChatElement {
  page: Page;
  server: TestServer;
  site: Site;
  complaints: string[];
}

export interface VisitOptions extends ServerOptions {
  /** Attributes of the script tag. */
  script?: string;
  body?: string;
  head?: string;
  html?: string;
  browser?: BrowserContextOptions;
  /** The name of the site under which its page is opened. */
  from?: keyof Site;
  expectedComplaints?: RegExp;
}

/** The tag of a chat in the page, which precedes the script. */
export const chatTag = (height: number, attributes = "", inside = "") =>
  `<agent-chat style="display: block; height: ${height}px" ${attributes}>${inside}</agent-chat>`;

/** Opens the site's page; `/next` has the same content. */
export async function visit(t: TestContext, browser: Browser, options: VisitOptions = {}): Promise<Visit> {
  const {
    script = "",
    body = "",
    head = "",
    html: attributes = "",
    browser: context,
    from = "url",
    expectedComplaints,
    ...rest
  } = options;
  const server = await startServer(t, { turns: [], ...rest });
  const tag = `<script src="${server.url}/widget.js" ${script}></script>`;
  const html = sitePage(body + tag, head).replace("<html", `<html ${attributes}`);
  const site = await startSite(t, { "/": html, "/next": html });
  const { page, complaints } = await openPage(t, browser, {
    reducedMotion: "reduce",
    ...context,
  });
  failOnComplaints(t, complaints, expectedComplaints);
  await page.goto(site[from]);
  return { page, server, site, complaints, ...chatIn(page.locator("agent-chat")) };
}

export const button = (page: Page) => page.locator('[part="launcher"]');
export const preview = (page: Page) => page.locator('[part="preview"]');
export const panel = (page: Page) => page.locator('[part="panel"]');
export const script = (page: Page, code: string) => page.evaluate(code);
