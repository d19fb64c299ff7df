/**
 * Runs the tests with Node's runner, several files of an area in one process: to start Node, a browser or a DOM costs more
 * than most files take. `node --import tsx --test FILE` runs any one of them alone.
 * Areas that are named as arguments are left out.
 */

import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { transpile } from "./support/transpile.ts";

/** Areas in the order in which they are begun, the longest first, and how many files share a process. */
const AREAS: Readonly<Record<string, number>> = {
  browser: 6,
  thorough: 6,
  cli: 1,
  server: 8,
  shared: 1,
  failover: 1,
  providers: 10,
  widget: 6,
  contract: 4,
  fuzz: 5,
  bench: 1,
};

/** These change or measure what belongs to a whole process: its memory, its environment, its timers. */
const ALONE = new Set([
  "test/providers/upstream.test.ts",
  "test/providers/bedrock-setup.test.ts",
  "test/widget/launcher.test.ts",
  "test/widget/markdown-flat.test.ts",
  "test/widget/marked-lexer.test.ts",
  "test/widget/reconnect.test.ts",
  "test/widget/transports.test.ts",
]);

/** Whether it takes a process for itself: also because it has an element in the one document of its process. */
function isAlone(file: string): boolean {
  return ALONE.has(file) || readFileSync(file, "utf8").includes('from "./mount.ts"');
}

/** Outside of `node_modules`, where the runner of Node 22 and later looks for nothing, and says so to nobody. */
const GROUPS = mkdtempSync(join(tmpdir(), "parley-tests-"));
process.on("exit", () => rmSync(GROUPS, { recursive: true, force: true }));

/** Of each file that is written for a process: the files of tests in it. */
const sources = new Map<string, string>();

/** What failed, one line each. */
const FAILED = join(GROUPS, "failed");

/** All tests take less, however busy the machine is. One that hangs is named long before (`support/watchdog.ts`). */
const ALL_MS = 1_200_000;

function filesOf(area: string): string[] {
  return readdirSync(`test/${area}`)
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => `test/${area}/${name}`);
}

/** Deals the files out, so that neighbours in the alphabet, which are often alike, take different processes. */
function deal(files: readonly string[], size: number): string[][] {
  const hands: string[][] = Array.from({ length: Math.ceil(files.length / size) }, () => []);
  for (const [index, file] of files.entries()) hands[index % hands.length]?.push(file);
  return hands;
}

/** Stands beside a group's file when all of the group was loaded. */
const loaded = (group: string) => `${group}.loaded`;

/** Imported first, so that it sees every test. As an argument of the runner it would be one of the servers' threads, too. */
const WATCHDOG = "test/support/watchdog.ts";

/** What a file has become (`support/transpile.ts`). */
const transpiled = (file: string) => pathToFileURL(join(GROUPS, file.replace(/\.ts$/, ".js"))).href;

/** Writes a file that imports those of each group. */
function writeGroups(area: string): string[] {
  const files = filesOf(area);
  const alone = files.filter(isAlone);
  const together = files.filter((file) => !isAlone(file));
  const groups = [...deal(together, AREAS[area] ?? 1), ...alone.map((file) => [file])];
  return groups.map((group, index) => {
    const path = join(GROUPS, `${area}-${index + 1}.mjs`);
    sources.set(path, group.join(" "));
    const lines = [
      ...[WATCHDOG, ...group].map((file) => `import ${JSON.stringify(transpiled(file))};`),
      'import { writeFileSync } from "node:fs";',
      `writeFileSync(${JSON.stringify(loaded(path))}, "");`,
    ];
    writeFileSync(path, `${lines.join("\n")}\n`);
    return path;
  });
}

for (const file of ALONE) if (!existsSync(file)) throw new Error(`there is no ${file}`);
const left = new Set(process.argv.slice(2));
const here = readdirSync("test", { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && filesOf(entry.name).length > 0)
  .map(({ name }) => name);
for (const area of left) if (!here.includes(area)) throw new Error(`there is no test/${area}`);
const areas = [...new Set([...Object.keys(AREAS), ...here])].filter((area) => !left.has(area));

const files = areas.flatMap(writeGroups);
await transpile(GROUPS);
const runner = spawn(
  process.execPath,
  [
    "--enable-source-maps",
    "--test",
    // Without a terminal Node 20 would write TAP, in five times as many lines.
    "--test-reporter=spec",
    "--test-reporter-destination=stdout",
    `--test-reporter=${transpiled("test/support/failed-reporter.ts")}`,
    `--test-reporter-destination=${FAILED}`,
    // One more than there are cores: a test often waits for another process.
    `--test-concurrency=${availableParallelism() + 1}`,
    ...files,
  ],
  // A process group of its own, so that nothing of it can be left.
  { stdio: "inherit", detached: true },
);

/** To the runner and all that it has started. */
function signalAll(signal: NodeJS.Signals): void {
  try {
    if (runner.pid !== undefined) process.kill(-runner.pid, signal);
  } catch {
    // All of them are gone.
  }
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => signalAll(signal));
const deadline = setTimeout(() => {
  console.error(`FAILED: the tests did not end within ${ALL_MS / 60_000} minutes.`);
  signalAll("SIGKILL");
}, ALL_MS);

runner.on("exit", (code, signal) => {
  clearTimeout(deadline);
  if (signal !== null) console.error(`FAILED: the runner was ended by ${signal}.`);
  process.exitCode = code ?? 1;
  // The runner ends well when it finds none of its files, too.
  for (const file of files) {
    if (existsSync(loaded(file))) continue;
    console.error(`FAILED: not all of these were loaded: ${sources.get(file)}`);
    process.exitCode = 1;
  }
  signalAll("SIGKILL");
  // Last, where it is looked for, and all that is left of a long log.
  if (!existsSync(FAILED)) return;
  // A process that ended without a word is named by its file.
  let failed = readFileSync(FAILED, "utf8");
  for (const [path, names] of sources) failed = failed.replaceAll(path, names);
  process.stderr.write(failed);
});
