/**
 * Runs the tests, several files per process, because starting Node, a browser or a DOM is slow. Arguments name areas and files
 * to leave out: `browser`, `cli/memory`. Single files: `node --import tsx --import ./test/support/css.mjs --test FILE`.
 */

import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { runTests } from "./support/run-tests.ts";
import { transpile } from "./support/transpile.ts";

/** Files per process, by area; the areas start in this order, the longest first. */
const AREAS = {
  browser: 10,
  edges: 10,
  thorough: 6,
  server: 8,
  contract: 4,
  cli: 1,
  shared: 1,
  failover: 1,
  rich: 1,
  providers: 10,
  widget: 6,
  fuzz: 5,
  bench: 1,
};

/** These files change or measure global state of a process: its environment, its timers. */
const ALONE = [
  ...["providers/upstream.test.ts", "providers/bedrock-setup.test.ts"],
  ...["widget/operations.test.ts", "thorough/operations.test.ts"],
];

const TEST_MINUTES = 4;

/** Names a test that hangs, since Node's own timeout would only name the process; records a group's tests. */
const BEFORE_EACH = `
import { appendFileSync } from "node:fs";
import { beforeEach } from "node:test";
import { clearTimeout, setTimeout } from "node:timers";
let timer;
beforeEach(({ name }) => {
  appendFileSync(process.argv[1] + ".rows", name + "\\n");
  clearTimeout(timer);
  timer = setTimeout(() => {
    console.error("FAILED: this did not end within ${TEST_MINUTES} minutes: " + name);
    process.exit(1);
  }, ${TEST_MINUTES} * 60_000).unref();
});
`;

/** The edges are rare cases in the browser's files. */
function filesOf(area: string): string[] {
  if (area === "edges")
    return filesOf("browser").filter((file) => /^ *it\(/m.test(readFileSync(`test/${file}`, "utf8")));
  const names = readdirSync(join("test", area)).filter((name) => name.endsWith(".test.ts"));
  return names.map((name) => `${area}/${name}`).filter((file) => !left.includes(file.replace(".test.ts", "")));
}

/** The import that gives a file its globals. Only files with the same import share a process. */
function globalsOf(file: string): string {
  if (ALONE.includes(file)) return file;
  return (
    /"\.\.?\/(?:support\/dom|mount|browser-globals|browser-stubs)\.ts"/.exec(
      readFileSync(`test/${file}`, "utf8"),
    )?.[0] ?? ""
  );
}

/** Distributes the files, the largest first, so that all groups take about the same time. */
function groupsOf(area: string): Group[] {
  const sizeOf = (file: string) => statSync(`test/${file}`).size;
  const files = filesOf(area).sort((a, b) => sizeOf(b) - sizeOf(a));
  return [...new Set(files.map(globalsOf))].flatMap((globals) => {
    const together = files.filter((file) => globalsOf(file) === globals);
    const count = Math.ceil(together.length / (AREAS[area as keyof typeof AREAS] ?? 1));
    return Array.from({ length: count }, (_, at) => ({
      area,
      files: together.filter((_file, index) => index % count === at),
    }));
  });
}

interface Group {
  readonly area: string;
  readonly files: readonly string[];
}

/**
 * Writes a module that runs a group's files. Its name begins with its place, because Node's runner sorts by name, and contains
 * the files' names, because a failed process is reported by it.
 */
function writeGroup(folder: string, { area, files }: Group, place: number): string {
  const names = files.map((file) =>
    file
      .replace(/^\w+/, area)
      .replace("/", "-")
      .replace(/\.test\.ts$/, ""),
  );
  const path = join(folder, `${String(place).padStart(3, "0")}-${names.join("+").slice(0, 200)}.mjs`);
  const imports = files.map((file) => `await import("./test/${file.replace(/\.ts$/, ".js")}");\n`);
  const rows = `process.env.ROWS = "${area === "edges" ? "edges" : "main"}";\n`;
  writeFileSync(path, `${BEFORE_EACH}${rows}${imports.join("")}`);
  return path;
}

const folders = readdirSync("test", { withFileTypes: true }).flatMap((it) => (it.isDirectory() ? it.name : []));
const areas = [...new Set([...Object.keys(AREAS), ...folders])];
const left = process.argv.slice(2);
const unknown = left.find((name) => !areas.includes(name) && !existsSync(`test/${name}.test.ts`));
if (unknown !== undefined) {
  console.error(`"${unknown}" is no area of the tests and no file in one. Arguments name what to leave out: ${areas.join(", ")}, cli/memory.
Run one file with: node --import tsx --import ./test/support/css.mjs --test test/server/keys.test.ts`);
  process.exit(1);
}

// Outside of `node_modules`, in which Node's runner finds no tests since version 22.
const folder = mkdtempSync(join(tmpdir(), "parley-tests-"));
await transpile(folder);
const groups = areas
  .filter((area) => !left.includes(area))
  .flatMap(groupsOf)
  .map((group, place) => writeGroup(folder, group, place));
// Two more than cores: tests mostly wait, for another process, a timer or a browser's next frame.
const flags = ["--enable-source-maps", `--test-concurrency=${availableParallelism() + 2}`];
process.exitCode = runTests(flags, groups, (rows) =>
  groups.filter((group) => {
    const path = `${group}.rows`;
    const begun = existsSync(path) ? readFileSync(path, "utf8").split("\n") : [];
    return rows.some((row) => begun.includes(row));
  }),
);
rmSync(folder, { recursive: true, force: true });
