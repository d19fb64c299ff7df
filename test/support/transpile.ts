/** Compiles the tests and all their imports to JavaScript once per run; `tsx` would do that in every process again. */

import { readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { build, type Plugin } from "esbuild";

const FOLDERS = ["bench", "build", "server", "test", "widget"];

/** Bundled into its only importer: loading its 900 files takes three times as long. */
const JOINED = /^@?happy-dom(\/|$)/;

/** Keeps each source a module of its own; its `import.meta.url` stays the original one. */
const modules: Plugin = {
  name: "modules",
  setup({ onLoad, onResolve }) {
    onResolve({ filter: /^/ }, ({ path, kind, importer }) => {
      if (kind === "entry-point") return undefined;
      if (!path.startsWith(".")) return JOINED.test(path) ? undefined : { path, external: true };
      if (importer.includes("node_modules") || path.endsWith(".css")) return undefined;
      const isSource = path.endsWith(".ts");
      const url = pathToFileURL(resolve(dirname(importer), path)).href;
      return { path: isSource ? path.replace(/\.ts$/, ".js") : url, external: true };
    });
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const here = JSON.stringify(pathToFileURL(path).href);
      return { contents: `const urlOfTheSource = ${here};${readFileSync(path, "utf8")}`, loader: "ts" };
    });
  },
};

/** Writes the modules into a folder as `.js`, at the relative paths of their sources. */
export async function transpile(folder: string): Promise<void> {
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  symlinkSync(resolve("node_modules"), join(folder, "node_modules"), "junction");
  const files = FOLDERS.flatMap((from) =>
    readdirSync(from, { recursive: true, encoding: "utf8" }).map((path) => join(from, path)),
  );
  await build({
    // `bench/server` may have packages of its own.
    entryPoints: files.filter((path) => path.endsWith(".ts") && !path.includes("node_modules")),
    outdir: folder,
    outbase: ".",
    bundle: true,
    plugins: [modules],
    define: { "import.meta.url": "urlOfTheSource" },
    loader: { ".css": "text" },
    format: "esm",
    platform: "node",
    target: "node20",
    sourcemap: true,
    sourcesContent: false,
    logLevel: "warning",
  });
}
