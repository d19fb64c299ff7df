/** Installs this folder's packages outside of the repository. */

import { execFileSync } from "node:child_process";
import { cpSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { after } from "node:test";
import { pathToFileURL } from "node:url";
import { REPOSITORY } from "../support/command.ts";
import type { Cleanup } from "../support/start-server.ts";
import { temporaryProject } from "../support/temporary-project.ts";
import { twice } from "../support/twice.ts";

const folder = temporaryProject({ after } as Cleanup, { "load.mjs": "export const load = (name) => import(name);\n" });
for (const name of ["package.json", "package-lock.json"]) cpSync(join("test/mcp", name), join(folder, name));
const npmCi = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
await twice(() => execFileSync("npm", npmCi, { cwd: folder }));
symlinkSync(REPOSITORY, join(folder, "node_modules/parley-agent"));

/** Imports one of the packages. */
export const { load } = await import(pathToFileURL(join(folder, "load.mjs")).href);

const fileOf = (name: string) => join(folder, "node_modules/@modelcontextprotocol", name, "dist/index.js");

/** Programs for `process.execPath`: the reference server with one of everything, and the server for files. */
export const EVERYTHING = fileOf("server-everything");
export const FILES = fileOf("server-filesystem");
export const CONFORMANCE = fileOf("conformance");
