/**
 * Lets Node import a style sheet as text, as the build does:
 * node --import tsx --import ./test/support/css.mjs --test FILE
 */

import { register } from "node:module";

const hooks = `
import { readFile } from "node:fs/promises";

export async function load(url, context, nextLoad) {
  const { protocol, pathname } = new URL(url);
  if (protocol !== "file:" || !pathname.endsWith(".css")) return nextLoad(url, context);
  const text = await readFile(new URL(pathname, url), "utf8");
  return { format: "module", source: "export default " + JSON.stringify(text), shortCircuit: true };
}
`;

register(`data:text/javascript,${encodeURIComponent(hooks)}`);
