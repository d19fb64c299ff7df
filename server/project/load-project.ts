import { existsSync, readFileSync, realpathSync, statSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { parseEnv } from "node:util";
import { type Agent, checkAgent } from "../agent/define.ts";
import { SetupError } from "../providers/failures/provider-error.ts";
import { importModule } from "./import-module.ts";

const AGENT_FILES = ["agent.ts", "agent.mts", "agent.js", "agent.mjs"];

/** Finds a project's folder, by path or by name in the working directory. @throws SetupError */
export function findProject(project: string): string {
  const folder = resolve(project);
  if (!existsSync(folder)) {
    throw new SetupError(`There is no project "${project}". Give the path of a folder that holds an agent.ts.`);
  }
  if (!statSync(folder).isDirectory()) {
    throw new SetupError(`"${project}" is a file. Give the folder that holds it.`);
  }
  // Imports resolve to real paths, so that is where the project is.
  return realpathSync(folder);
}

/** The working directory, if it holds an agent: what `parley start` serves when it is given no project. */
export function projectHere(): string | undefined {
  return AGENT_FILES.some((name) => existsSync(name)) ? findProject(".") : undefined;
}

/** The variables of a file in the form of `.env`. @throws SetupError */
export function readEnvFile(file: string): Record<string, string> {
  return Object.fromEntries(
    Object.entries(parseEnv(readText(file).replace(/^\uFEFF/, ""))).map(([name, value]) => [name, value ?? ""]),
  );
}

/** Imports and checks the agent of a project. @throws SetupError that names the file and what to do. */
export async function loadAgent(folder: string): Promise<Agent> {
  const file = AGENT_FILES.map((name) => join(folder, name)).find((path) => existsSync(path));
  if (file === undefined) {
    throw new SetupError(
      `${folder} holds no agent. Write an agent.ts there that exports defineAgent({ … }) as default.`,
    );
  }
  const exported = await importAgent(file);
  try {
    return checkAgent(exported);
  } catch (error) {
    if (error instanceof SetupError) throw new SetupError(`${file}: ${error.message}`);
    throw error;
  }
}

async function importAgent(file: string): Promise<unknown> {
  try {
    const module = await settled(importModule(file));
    if (module.default === undefined) {
      throw new SetupError("nothing is exported as default: export default defineAgent({ … }).");
    }
    return module.default;
  } catch (error) {
    throw new SetupError(`${file} cannot be loaded: ${firstProblem(error)}`, { cause: error });
  }
}

/**
 * Node ends without a word, and with exit code 0, when a module awaits what nothing will ever settle; and with
 * a stack trace, when a module leaves a rejected promise behind.
 */
async function settled<Value>(loading: Promise<Value>): Promise<Value> {
  let giveUp = (_reason: unknown) => {};
  const failed = new Promise<never>((_resolve, reject) => {
    giveUp = reject;
  });
  const onIdle = () => giveUp(new Error("it awaits something that never comes."));
  process.once("beforeExit", onIdle);
  process.once("unhandledRejection", giveUp);
  try {
    return await Promise.race([loading, failed]);
  } finally {
    process.off("beforeExit", onIdle);
    process.off("unhandledRejection", giveUp);
  }
}

/** One line of what an import throws: for a syntax error where it is and what is wrong, else the message. */
function firstProblem(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const [, problem, place] = /^ParseError: (.+?)\s*\n\s*(.+:\d+:\d+)/.exec(message) ?? [];
  if (place !== undefined) return `${basename(place)}: ${problem}`;
  return message.split("\n", 1)[0] || "it throws an error without a message.";
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new SetupError(`${file} cannot be read: check its permissions.`, { cause: error });
  }
}
