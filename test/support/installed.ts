import { cpSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { REPOSITORY } from "./command.ts";
import type { Cleanup } from "./start-server.ts";
import { temporaryProject } from "./temporary-project.ts";

export interface Installation {
  /** Beside what npm installs. */
  files?: Readonly<Record<string, string>>;
}

/** Parley as npm installs it, without the packages that are optional; returns the path of its command. */
export function installed(t: Cleanup, { files }: Installation = {}): string {
  const manifest = readFileSync(join(REPOSITORY, "package.json"), "utf8");
  const folder = temporaryProject(t, { "package.json": manifest, ...files });
  cpSync(join(REPOSITORY, "dist"), join(folder, "dist"), { recursive: true });
  for (const name of Object.keys(JSON.parse(manifest).dependencies)) {
    const link = join(folder, "node_modules", name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(REPOSITORY, "node_modules", name), link);
  }
  return join(folder, "dist/cli.js");
}
