import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { REPOSITORY } from "../support/command.ts";

/** Compiles each agent.ts in the subfolders of a folder with our own strict settings, against our sources. */
export function compileAgents(folder: string): void {
  const compilerOptions = { rootDir: "/", paths: { "parley-agent": [join(REPOSITORY, "server/parley-agent.ts")] } };
  const extended = join(REPOSITORY, "tsconfig.json");
  const tsconfig = { extends: extended, compilerOptions, include: ["*/agent.ts"], exclude: [] };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(tsconfig));
  execFileSync("node", [join(REPOSITORY, "node_modules/typescript/bin/tsc"), "-p", folder], {
    stdio: ["ignore", "inherit", "inherit"],
  });
}
