import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { ConfigError } from "../errors.ts";

/** What to install, with the version that Parley supports: google-auth-library 11, for example, needs Node 22. */
const INSTALL = {
  "@aws-sdk/client-bedrock-runtime": "@aws-sdk/client-bedrock-runtime@3",
  "google-auth-library": "google-auth-library@10",
  "@redis/client": "@redis/client@6",
  "@modelcontextprotocol/client": "@modelcontextprotocol/client@2",
  "@modelcontextprotocol/client/stdio": "@modelcontextprotocol/client@2",
};

/** The optional peer dependencies of package.json that models and settings need. */
export type OptionalPackage = keyof typeof INSTALL;

/** Loads such a package, or with "find" only locates it. Rejects with a `ConfigError` that says how to install it. */
export type LoadPackage = (name: OptionalPackage, only?: "find") => Promise<unknown>;

const NEEDED_BY: Partial<Record<OptionalPackage, string>> = {
  "@redis/client": "PARLEY_REDIS_URL",
  "@modelcontextprotocol/client": "mcp",
};

/**
 * Imports a package that only some models and settings need: from the project's `node_modules` if it is there, so that
 * a project can bring its own, else from where Parley is installed.
 * @throws ConfigError that says how to install it and, if it is broken, what is wrong with it
 */
export async function loadOptionalPackage(
  name: OptionalPackage,
  projectFolder: string | undefined,
  only?: "find",
): Promise<unknown> {
  const remedy = `Run this in the project's folder: npm install ${INSTALL[name]}`;
  try {
    if (only === undefined) return await importFrom(projectFolder, name);
    return (projectFolder && resolveFrom(projectFolder, name)) || createRequire(import.meta.url).resolve(name);
  } catch (cause) {
    const message = isMissing(cause, name)
      ? `${NEEDED_BY[name] ?? "This model"} needs the package ${name}, which is not installed. ${remedy}`
      : `The package ${name} cannot be loaded: ${firstLine(cause)}. ${remedy}`;
    throw new ConfigError(message, { cause });
  }
}

/**
 * Loads a CommonJS package that Parley uses if it is installed: from the project's `node_modules`, else from beside
 * Parley. `undefined` if it is in neither. @throws ConfigError for a broken one
 */
export function loadIfInstalled(name: string, projectFolder: string | undefined): unknown {
  try {
    const inProject = projectFolder && resolveFrom(projectFolder, name);
    return createRequire(import.meta.url)(inProject || name);
  } catch (cause) {
    if (isMissing(cause, name)) return undefined;
    throw new ConfigError(`The package ${name} cannot be loaded: ${firstLine(cause)}.`, { cause });
  }
}

/** A broken package is only a `problem` to warn about: the server works without it. */
export function loadOpenTelemetry(projectFolder: string | undefined): {
  api?: typeof import("@opentelemetry/api");
  problem?: string;
} {
  try {
    return { api: loadIfInstalled("@opentelemetry/api", projectFolder) as typeof import("@opentelemetry/api") };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

async function importFrom(folder: string | undefined, name: string): Promise<unknown> {
  const inProject = folder && resolveFrom(folder, name);
  return import(inProject ? pathToFileURL(inProject).href : name);
}

function resolveFrom(folder: string, name: string): string | undefined {
  try {
    return createRequire(join(folder, "agent.js")).resolve(name);
  } catch (error) {
    if (!isMissing(error, name)) throw error;
    // Not in the project: Parley's own installation may have it.
    return undefined;
  }
}

/** A package that is there but lacks a file, or one of its own dependencies, is broken and not missing. */
function isMissing(error: unknown, name: string): boolean {
  return (
    error instanceof Error &&
    "code" in error &&
    // The codes of `require` and of `import`.
    (error.code === "MODULE_NOT_FOUND" || error.code === "ERR_MODULE_NOT_FOUND") &&
    error.message.includes(`'${name}'`)
  );
}

function firstLine(error: unknown): string {
  const [line = ""] = String(error instanceof Error ? error.message : error).split("\n", 1);
  return line.replace(/\.$/, "");
}
