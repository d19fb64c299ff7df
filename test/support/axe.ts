/** What axe finds wrong with a page, by the rules of WCAG. */

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Rules that a colour scheme can violate. */
export const OF_COLOURS = ["color-contrast", "link-in-text-block"];

/** Violations as "rule: element: reason", of all rules or only of `some`. */
export async function axeFindings(page: Page, some?: readonly string[]): Promise<string[]> {
  // The script is large: load it only once per document.
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(AXE);
  return page.evaluate(
    async (values) => {
      const { violations } = await window.axe.run(document, {
        resultTypes: ["violations"],
        ...(values && { runOnly: { type: "rule", values } }),
        // A rule of WCAG 2.2, off by default.
        rules: { "target-size": { enabled: true } },
      });
      return violations.flatMap(({ id, nodes }) =>
        nodes.map(({ target, failureSummary }) => `${id}: ${target.flat().join(" > ")}: ${failureSummary}`),
      );
    },
    some as string[] | undefined,
  );
}

declare global {
  interface Window {
    axe: typeof import("axe-core");
  }
}
