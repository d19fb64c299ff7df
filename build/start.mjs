/** `npm start` and `npm test` in a clone: installs and builds what is missing or old, says so, and goes on. */

import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));

const SOURCES = ["server", "widget", "build", "cli.ts", "esbuild.config.mjs", "package.json", "package-lock.json"];

/** When a file, or the newest file of a folder, was changed. */
function changedAt(path) {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (!stats?.isDirectory()) return stats?.mtimeMs ?? 0;
  return Math.max(0, ...readdirSync(path).map((name) => changedAt(join(path, name))));
}

/** Runs npm, says what it does and how long it took, and shows its output only if it fails. */
function npm(doing, command) {
  const startedAt = Date.now();
  process.stdout.write(`${doing}... `);
  const { status, stdout, stderr } = spawnSync(`npm ${command}`, { encoding: "utf8", shell: true });
  if (status !== 0) {
    console.error(`it failed:\n${stdout}${stderr}`);
    process.exit(1);
  }
  console.log(`${((Date.now() - startedAt) / 1000).toFixed(1)} s`);
}

function prepare() {
  const installed = changedAt("node_modules/.package-lock.json");
  if (installed < changedAt("package-lock.json")) {
    npm("Installing packages", "install --ignore-scripts --no-save --no-audit --no-fund --loglevel=error");
  }
  const built = existsSync("dist/public/widget.js") ? changedAt("dist/cli.js") : 0;
  if (built < Math.max(...SOURCES.map(changedAt))) npm("Building Parley", "run --silent build");
}

const [command, ...args] = process.argv.slice(2);
prepare();
if (command === "start") {
  const cli = fileURLToPath(new URL("../dist/cli.js", import.meta.url));
  process.argv = [process.argv[0], cli, "start", ...args];
  process.chdir(process.env.INIT_CWD ?? ".");
  await import(pathToFileURL(cli).href);
}
