/** Builds the projects in this folder, each in a new folder with the packed parley-agent. */

import { execFile, spawn } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { atEnd, type TestEnd } from "../support/at-end.ts";
import { REPOSITORY } from "../support/command.ts";
import { within } from "../support/deadline.ts";
import { twice } from "../support/twice.ts";

const run = promisify(execFile);

const SOURCES = join(REPOSITORY, "test/frameworks");

/** Sources that a project takes from another one. */
const SHARED: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "next-15": { "next-16/app": "app", "next-16/tsconfig.json": "tsconfig.json", "react/src/help.tsx": "app/help.tsx" },
  "next-16": { "react/src/help.tsx": "app/help.tsx" },
};

export const NAMES: readonly string[] = readdirSync(SOURCES, { withFileTypes: true }).flatMap((it) =>
  it.isDirectory() ? it.name : [],
);

/** A command's environment: without the test runner's variables, and with telemetry off. */
export function environment(): NodeJS.ProcessEnv {
  // In CI, Next would warn that there is no build cache.
  const { NODE_OPTIONS: _options, NODE_TEST_CONTEXT: _context, CI: _ci, ...env } = process.env;
  return { ...env, NO_COLOR: "1", NEXT_TELEMETRY_DISABLED: "1" };
}

/** Runs a command in a folder; returns its output. @throws with that, if it fails */
export async function command(folder: string, name: string, ...args: string[]): Promise<string> {
  const options = { cwd: folder, env: environment(), maxBuffer: 1 << 26 };
  const { stdout, stderr } = await run(name, args, options).catch((error) => {
    throw new Error(`${name} ${args.join(" ")} failed:\n${error.stdout}\n${error.stderr}`);
  });
  return `${stdout}\n${stderr}`;
}

/** Packs the built package. Returns the path of the tarball. */
export async function pack(t: TestEnd): Promise<string> {
  const folder = temporaryFolder(t);
  const printed = await command(
    REPOSITORY,
    "npm",
    "pack",
    "--ignore-scripts",
    "--json",
    "--loglevel=error",
    "--pack-destination",
    folder,
  );
  const [{ filename }] = JSON.parse(printed.slice(printed.indexOf("[\n"), printed.lastIndexOf("]") + 1));
  return join(folder, filename);
}

/** A framework's project, ready to build, with the server's address in place of the documented one. */
export async function prepare(t: TestEnd, name: string, tarball: string, server: string): Promise<string> {
  const folder = temporaryFolder(t);
  for (const file of ["package.json", "package-lock.json"]) cpSync(join(SOURCES, name, file), join(folder, file));
  await twice(() => command(folder, "npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"));
  for (const [source, target] of Object.entries(SHARED[name] ?? {})) {
    cpSync(join(SOURCES, source), join(folder, target), { recursive: true });
  }
  cpSync(join(SOURCES, name), folder, { recursive: true });
  for (const path of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    if (/^node_modules|package-lock/.test(path) || !/\.(?:tsx?|jsx?|vue|svelte|html)$/.test(path)) continue;
    const text = readFileSync(join(folder, path), "utf8");
    writeFileSync(join(folder, path), text.replaceAll("https://chat.example.com", server));
  }
  const install = ["install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error", tarball];
  await twice(() => command(folder, "npm", ...install));
  return folder;
}

/** Starts a project's own server until the end of the test. Returns its address. */
export async function serveCommand(t: TestEnd, folder: string, ...args: string[]): Promise<string> {
  const child = spawn("npx", args, { cwd: folder, env: environment(), detached: true });
  let printed = "";
  const url = new Promise<string>((resolve, reject) => {
    for (const output of [child.stdout, child.stderr]) {
      output.setEncoding("utf8").on("data", (text: string) => {
        printed += text;
        const [, found] = /(http:\/\/(?:localhost|127\.0\.0\.1):\d+)/.exec(printed) ?? [];
        if (found && /ready/i.test(printed)) resolve(found);
      });
    }
    child.once("close", () => reject(new Error(`the command ended: ${printed}`)));
  });
  atEnd(t, () => child.exitCode === null && process.kill(-(child.pid ?? 0), "SIGKILL"));
  return within(url, `the address of ${args.join(" ")}`, 60_000);
}

function temporaryFolder(t: TestEnd): string {
  const folder = mkdtempSync(join(tmpdir(), "parley-framework-"));
  atEnd(t, () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}
