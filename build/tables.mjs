/** What the build reads from the sources: the table of properties, and what the button is called in each language. */

import { readdirSync } from "node:fs";
import { build } from "esbuild";

const locales = readdirSync("widget/i18n/locales")
  .filter((name) => /^[a-z]{2}\.ts$/.test(name))
  .map((name) => name.slice(0, 2));

/** Evaluates the modules as they are. */
export async function readTables() {
  const { outputFiles } = await build({
    stdin: {
      contents: [
        'export * from "./element/properties.ts";',
        'import { en } from "./i18n/strings.ts";',
        ...locales.map((name) => `import { locale as ${name} } from "./i18n/locales/${name}.ts";`),
        `const all = { en, ${locales} };`,
        "export const openChat = Object.fromEntries(Object.entries(all).map(([name, { openChat }]) => [name, openChat]));",
      ].join("\n"),
      resolveDir: "widget",
    },
    bundle: true,
    format: "esm",
    write: false,
  });
  return import(`data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`);
}
