/** Writes dist/types/: one rolled-up file of declarations for each entry of the package. */

import { rollup } from "rollup";
import { dts } from "rollup-plugin-dts";

/**
 * By the name of their output. The first of each group has what the others refer to. Groups are bundled separately:
 * what they share would become one more file, with a name that nobody imports.
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

/** Comments at the head of source files, which describe no declaration: they mean nothing to users. */
const ofFiles = /^\/\*\*(?:(?!\*\/)[\s\S])*\*\/\n(?=\n|\/\*\*)/gm;

/** If a project lacks @types/node, which it need not have, Node's types are `any` there, and no error. */
const IGNORED = "// @ts-ignore: it may not be installed.\n";

/** Makes the compiler read @types/node, even if a project's `types` do not list it. */
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
    // The declarations for hosts refer to those for projects.
    paths: (id) => (id.endsWith("/parley-agent.ts") ? "./parley-agent.js" : id),
    plugins: [{ name: "comments", renderChunk: (code) => withNode(code.replace(ofFiles, "").replace(/^\n+/, "")) }],
  });
  await bundle.close();
}
