/** What axe finds wrong with a page, by the rules of WCAG. */

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** As "rule: element: why". */
export async function axeFindings(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  return page.evaluate(async () => {
    const { violations } = await window.axe.run(document, {
      resultTypes: ["violations"],
      // Of WCAG 2.2; off by default.
      rules: { "target-size": { enabled: true } },
    });
    return violations.flatMap(({ id, nodes }) =>
      nodes.map(({ target, failureSummary }) => `${id}: ${target.flat().join(" > ")}: ${failureSummary}`),
    );
  });
}

declare global {
  interface Window {
    axe: typeof import("axe-core");
  }
}
