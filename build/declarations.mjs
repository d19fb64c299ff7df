/** Writes dist/types/: one rolled-up file of declarations for each entry of the package. */

import { rollup } from "rollup";
import { dts } from "rollup-plugin-dts";

/**
 * By the name of the file that it becomes. The first of each group has what the others refer to. What two groups share would
 * be one more file, with a name that nobody imports, so each has its own.
 */
const GROUPS = [
  { "parley-agent": "server/parley-agent.ts" },
  { mount: "server/mount.ts" },
  {
    widget: "widget/element/public-types.ts",
    react: "widget/element/jsx/react.ts",
    preact: "widget/element/jsx/preact.ts",
    solid: "widget/element/jsx/solid.ts",
    vue: "widget/element/jsx/vue.ts",
    svelte: "widget/element/jsx/svelte.ts",
  },
];

/** Comments that stand at the head of our source files and describe no declaration: they mean nothing to users. */
const ofFiles = /^\/\*\*(?:(?!\*\/)[\s\S])*\*\/\n(?=\n|\/\*\*)/gm;

/** Without @types/node, which a project need not have, what comes from Node is `any` there, and no error. */
const IGNORED = "// @ts-ignore: it may not be installed.\n";

/** Has the compiler read @types/node, also where a project's `types` do not list it. */
function withNode(code) {
  if (!/ from ['"]node:/.test(code)) return code;
  return `${IGNORED}/// <reference types="node" />\n${code.replace(/^(?=import .* from ['"]node:)/gm, IGNORED)}`;
}

for (const input of GROUPS) {
  const bundle = await rollup({
    input,
    // The types of `node:` come from @types/node. Vue and Svelte are not installed here: test/frameworks compiles with them.
    external: /^(?:node:|vue$|svelte\/|\.\/parley-agent\.ts$)/,
    plugins: [dts()],
    onwarn(warning) {
      throw new Error(warning.message);
    },
  });
  await bundle.write({
    dir: "dist/types",
    format: "es",
    // What hosts import refers to what projects import.
    paths: (id) => (id.endsWith("/parley-agent.ts") ? "./parley-agent.js" : id),
    plugins: [{ name: "comments", renderChunk: (code) => withNode(code.replace(ofFiles, "").replace(/^\n+/, "")) }],
  });
  await bundle.close();
}
