/**
 * Lets Node import a style sheet as text and a font as base64, as the build does:
 * node --import tsx --import ./test/support/css.mjs --test FILE
 */

import { register } from "node:module";

const hooks = `
import { readFile } from "node:fs/promises";

export async function load(url, context, nextLoad) {
  const { protocol, pathname } = new URL(url);
  const encoding = { css: "utf8", woff2: "base64" }[pathname.split(".").at(-1)];
  if (protocol !== "file:" || !encoding) return nextLoad(url, context);
  const text = await readFile(new URL(pathname, url), encoding);
  return { format: "module", source: "export default " + JSON.stringify(text), shortCircuit: true };
}
`;

register(`data:text/javascript,${encodeURIComponent(hooks)}`);
