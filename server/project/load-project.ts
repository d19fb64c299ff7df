/** Finds a project's folder and loads the agent that it exports. */

import { existsSync, readFileSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Jiti, JitiOptions } from "jiti";
import { type AgentModule, checkModule } from "../agent/define.ts";
import { ModuleLife } from "../agent/served-agent.ts";
import { ConfigError } from "../errors.ts";
import { agentFileIn } from "./agent-files.ts";
import { ownModule } from "./own-files.ts";

/** The folder of a project, which is given by its path or by its name in the working directory. @throws ConfigError */
export function findProject(project: string): string {
  const folder = resolve(project);
  if (!existsSync(folder)) {
    throw new ConfigError(`There is no folder "${project}". Give the path of a folder with an agent.ts.`);
  }
  if (!statSync(folder).isDirectory()) {
    throw new ConfigError(`"${project}" is a file. Give its folder: ${relative(".", dirname(folder)) || "."}`);
  }
  // Imports resolve to real paths.
  return realpathSync(folder);
}

/** The working directory, if it holds an agent: what `parley start` serves if it is given no project. @throws ConfigError */
export async function projectHere(): Promise<string | undefined> {
  if (agentFileIn(".") !== undefined) return findProject(".");
  (await import("./near-miss.ts")).refuseNearMiss(".");
  return undefined;
}

/** How to load the modules of a project again, with the options of another `jiti` that compiles them. */
export interface Reloading {
  options(compiler: Jiti): JitiOptions;
  /** Whether other agents may be answering, whose tools may leave rejected promises behind, too. */
  isServing: boolean;
}

/** Imports and checks the agent of a project. @throws ConfigError that names the file and says what to do */
export async function loadProject(folder: string, reloading?: Reloading): Promise<AgentModule> {
  const file = agentFileIn(folder);
  if (file === undefined) throw (await import("./near-miss.ts")).noAgentIn(folder);
  return check(file, await importAgent(file, reloading));
}

type Exports = Readonly<Record<string, unknown>>;

/** @throws ConfigError */
function check(file: string, exports: Exports): AgentModule {
  const { close } = exports;
  try {
    return checkModule(exports);
  } catch (error) {
    // The module will not be served.
    if (typeof close === "function") void new ModuleLife(() => close()).end().catch(() => {});
    if (error instanceof ConfigError) throw new ConfigError(`${file}: ${error.message}`);
    throw error;
  }
}

async function importAgent(file: string, reloading?: Reloading): Promise<Exports> {
  try {
    const loading = importModule(file, reloading);
    const module = await (reloading?.isServing ? loading : settled(loading, basename(file)));
    if (module.default === undefined) {
      throw new ConfigError("nothing is exported as default. Write: export default defineAgent({ … }).");
    }
    return module;
  } catch (error) {
    const problem = [firstProblem(error), ...framesIn(dirname(file), error)].join("\n    at ");
    throw new ConfigError(`${file} cannot be loaded: ${problem}`, { cause: error });
  }
}

/** Imports TypeScript or JavaScript of any kind. `parley-agent` is the running package: projects need no `node_modules`. */
async function importModule(file: string, reloading?: Reloading): Promise<Exports> {
  const source = readFileSync(file, "utf8");
  // Node can import a plain file, if that happens once and the file imports nothing, not even later in a tool.
  const mayHaveTwo = namesTwoDefaults(source);
  const isPlain = file.endsWith(".mjs") && !mayHaveTwo && !/\b(?:import|require)\b/.test(source);
  if (isPlain && reloading === undefined) return import(pathToFileURL(file).href);
  const { createJiti } = await import("jiti");
  // Errors name the lines of the project's TypeScript.
  process.setSourceMapsEnabled(true);
  let tsconfigPaths = true;
  try {
    createJiti(file, { tsconfigPaths, fsCache: false });
  } catch {
    // A package that tsconfig.json extends may not be there in production.
    tsconfigPaths = false;
  }
  const options = {
    alias: { "parley-agent": fileURLToPath(ownModule("server/parley-agent.ts")) },
    fsCache: cacheOf(dirname(file)),
    sourceMaps: true,
    interopDefault: false,
    tsconfigPaths,
    jsx: { runtime: "automatic" as const },
  };
  const compiler = createJiti(file, options);
  const jiti = reloading === undefined ? compiler : createJiti(file, { ...options, ...reloading.options(compiler) });
  // If there are several default exports, `jiti` takes the last one in TypeScript.
  if (mayHaveTwo && hasTwoDefaults(jiti.transform({ source, filename: file, ts: true, async: true }))) {
    throw new ConfigError('there are two default exports. Keep one "export default".');
  }
  // `jiti.import` gives JavaScript to Node and, if the module throws, runs it a second time.
  const evaluating = { filename: file, async: true, forceTranspile: true };
  const exported = (await jiti.evalModule(source, evaluating)) as Exports & { __esModule?: true };
  const isEmpty = Object.keys(exported).length === 0;
  const isModule = exported.__esModule || exported.default !== undefined || isEmpty;
  return isModule ? exported : { default: exported };
}

/** Whether the source names several default exports, even if only in a comment or a text. */
function namesTwoDefaults(source: string): boolean {
  return (source.match(/\b(?:export|as)\s+default\b/g)?.length ?? 0) > 1;
}

/** Compiled code begins with a declaration of each export: `exports.default = exports.name = void 0;` */
const DECLARED = /"__esModule", \{ value: true \}\);((?:\s*(?:exports\.[\w$]+ = )+(?:void 0|[\w$]+);)*)/;

/** Whether compiled code has several, and not only a comment or a text that names them. */
function hasTwoDefaults(compiled: string): boolean {
  return (DECLARED.exec(compiled)?.[1]?.match(/exports\.default = /g)?.length ?? 0) > 1;
}

/** Where compiled files are kept. Never the folder for temporary files: others can write there, and `jiti` runs what it finds. */
function cacheOf(folder: string): string | false {
  const packages = join(folder, "node_modules");
  return existsSync(packages) && join(packages, ".cache/jiti");
}

/** How long a module may load before a message says so. */
export const SILENT_LOAD_MS = 5000;

/**
 * Rejects if a module awaits a promise that never settles, when Node would end silently with exit code 0, and if a
 * module leaves a rejected promise behind, when Node would end with a stack trace.
 */
async function settled<Value>(loading: Promise<Value>, name: string): Promise<Value> {
  const sayWhy = () =>
    process.stderr.write(
      `parley: ${name} is still loading. It imports large packages, the machine is busy, or a top-level await in it, or in a file that it imports, has not finished.\n`,
    );
  const timer = setTimeout(sayWhy, SILENT_LOAD_MS).unref();
  let giveUp = (_reason: unknown) => {};
  const failed = new Promise<never>((_resolve, reject) => {
    giveUp = reject;
  });
  const onIdle = () => giveUp(new Error("it awaits a promise that never settles."));
  const onExit = () => {
    process.stderr.write(
      `parley: ${name}, or a file that it imports, ended the process while it was loaded. Look for process.exit() there.\n`,
    );
    process.exitCode = 1;
  };
  process.once("beforeExit", onIdle);
  process.once("unhandledRejection", giveUp);
  process.once("exit", onExit);
  try {
    return await Promise.race([loading, failed]);
  } finally {
    clearTimeout(timer);
    process.off("beforeExit", onIdle);
    process.off("unhandledRejection", giveUp);
    process.off("exit", onExit);
  }
}

/**
 * Where in the project's own files an error was thrown, innermost first: `file:line`, relative to the folder. Without
 * columns, which are those of the compiled code.
 */
export function framesIn(folder: string, error: unknown): string[] {
  const stack = error instanceof Error ? (error.stack ?? "") : "";
  const places = stack.matchAll(
    /^\s+at (?:.*\()?(?:async )?(?:file:\/\/)?(\/[^():]+|[A-Za-z]:[\\/][^():]+):(\d+):\d+\)?$/gm,
  );
  return [...places].flatMap(([, path = "", line]) => {
    const own = relative(folder, path);
    return own.startsWith("..") || own.includes("node_modules") || isAbsolute(own) ? [] : [`${own}:${line}`];
  });
}

/** One line about an error of an import: for a syntax error its place and what is wrong, else the message. */
function firstProblem(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const [, problem, place] = /^ParseError: (.+?)\s*\n\s*(.+:\d+:\d+)/.exec(message) ?? [];
  if (place !== undefined) return `${basename(place)}: ${problem}`;
  // Where the compiled code calls an import, it is `(0, _package.name)`.
  const plain = message.replace(/\(0 ?, _\w+\.(\w+)\)/g, "$1");
  const [, missing] = /^Cannot find (?:module|package) '((?:@[^'/]+\/)?[^'./@~#][^'/]*)/.exec(message) ?? [];
  const advice = missing === undefined ? "" : `. Run in the agent's folder: npm install ${missing}`;
  // The package `parley`, which has the name of the command, is another one.
  if (missing === "parley") return `There is no module 'parley'. Import from "parley-agent".`;
  return `${plain.split("\n", 1)[0] || "it threw an error without a message."}${advice}`;
}
