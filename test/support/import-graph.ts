import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";

/** What each source file imports: relative ones, style sheets too, as paths from the repository's root, packages by name. */
export type ImportGraph = ReadonlyMap<string, readonly string[]>;

const IMPORT = /(?:^|\n)\s*(?:import|export)\b[^;]*?\bfrom\s*"([^"]+)"|\bimport\s*\(?\s*"([^"]+)"/g;

/** Every `.ts` file below these folders, with type imports and dynamic ones. */
export function readImports(folders: readonly string[]): ImportGraph {
  const files = folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts"))
      .map((name) => posix.join(folder, name)),
  );
  return new Map(files.map((file) => [file, importsOf(file)]));
}

export function importsOf(file: string): string[] {
  return [...readFileSync(file, "utf8").matchAll(IMPORT)].map(([, from, called]) => {
    const target = from ?? called ?? "";
    return target.startsWith(".") ? join(dirname(file), target) : target;
  });
}

/** The first circle of imports, as the files on it; `undefined` when there is none. */
export function findCircle(graph: ImportGraph): string[] | undefined {
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): string[] | undefined => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (done.has(file)) return undefined;
    for (const target of graph.get(file) ?? []) {
      const circle = visit(target, [...path, file]);
      if (circle !== undefined) return circle;
    }
    done.add(file);
    return undefined;
  };
  for (const file of graph.keys()) {
    const circle = visit(file, []);
    if (circle !== undefined) return circle;
  }
  return undefined;
}
