/**
 * The tests and all that they import as JavaScript, made once for a whole run: `tsx` does it in every process anew, and its
 * thread that is asked for each module costs a process more than the tests of most files do.
 */

import { readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { build, type Plugin } from "esbuild";

const FOLDERS = ["bench", "build", "server", "test", "widget"];

/** Is imported by one module alone, so that it may become a part of it: read as 900 files it takes three times as long. */
const JOINED = /^@?happy-dom(\/|$)/;

/** Stands for `import.meta.url`. */
const HERE = "urlOfTheSource";

/** `bench/server` has packages of its own, once somebody has installed them. */
const PACKAGES = /(^|[/\\])node_modules[/\\]/;

function sources(): string[] {
  return FOLDERS.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((path) => path.endsWith(".ts") && !PACKAGES.test(path))
      .map((path) => join(folder, path)),
  );
}

/** Each source stays a module of its own, and is told that it stands where it was written. */
const modules: Plugin = {
  name: "modules",
  setup({ onLoad, onResolve }) {
    onResolve({ filter: /^/ }, ({ path, kind, importer }) => {
      if (kind === "entry-point") return undefined;
      const isOwn = !importer.includes("node_modules");
      if (!path.startsWith(".")) return JOINED.test(path) ? undefined : { path, external: true };
      if (!isOwn) return undefined;
      return path.endsWith(".ts")
        ? { path: path.replace(/\.ts$/, ".js"), external: true }
        : { path: pathToFileURL(resolve(dirname(importer), path)).href, external: true };
    });
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const here = JSON.stringify(pathToFileURL(path).href);
      return { contents: `const ${HERE} = ${here};${readFileSync(path, "utf8")}`, loader: "ts" };
    });
  },
};

/** Writes the modules into a folder, at the paths of their sources and as `.js`. */
export async function transpile(folder: string): Promise<void> {
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  symlinkSync(resolve("node_modules"), join(folder, "node_modules"), "junction");
  await build({
    entryPoints: sources(),
    outdir: folder,
    outbase: ".",
    bundle: true,
    plugins: [modules],
    define: { "import.meta.url": HERE },
    format: "esm",
    platform: "node",
    target: "node20",
    sourcemap: true,
    sourcesContent: false,
    logLevel: "warning",
  });
}
