/** What must never happen in a page, whatever an answer holds. */

import type { Page } from "playwright-core";

declare global {
  interface Window {
    ran: () => void;
    /** Milliseconds of the longest time in which the page could not answer. */
    longestTask: number;
  }
}

/** Loads the page again and from then on notes whatever runs, asks another host, opens a dialog or goes elsewhere. */
export async function watchIncidents(page: Page, hosts: readonly string[]): Promise<string[]> {
  const incidents: string[] = [];
  await page.exposeFunction("ran", () => incidents.push("a script ran"));
  await page.addInitScript(() => {
    window.longestTask = 0;
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) {
        window.longestTask = Math.max(window.longestTask, duration);
      }
    }).observe({ type: "longtask" });
  });
  page.on("dialog", (dialog) => {
    incidents.push(`dialog ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("popup", (popup) => incidents.push(`popup ${popup.url()}`));
  page.on("request", (request) => {
    const { host, protocol, href } = new URL(request.url());
    if (!hosts.includes(host) && !/^(blob|data):$/.test(protocol)) {
      incidents.push(`request ${href}`);
    }
  });
  await page.reload();
  page.on("framenavigated", (frame) => incidents.push(`navigation to ${frame.url()}`));
  return incidents;
}
