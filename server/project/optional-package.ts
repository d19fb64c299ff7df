import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { SetupError } from "../providers/failures/provider-error.ts";
import type { OptionalPackage } from "../providers/provider.ts";

/** With the version where the newest one does not fit: google-auth-library 11 needs Node 22. */
const INSTALL: Record<OptionalPackage, string> = {
  "@anthropic-ai/sdk": "@anthropic-ai/sdk",
  "@aws-sdk/client-bedrock-runtime": "@aws-sdk/client-bedrock-runtime",
  "google-auth-library": "google-auth-library@10",
};

/**
 * Imports a package that only some models need: from the project's `node_modules` if it is there, so that a
 * project can bring its own, else from where Parley is installed.
 * @throws SetupError that says how to install it
 */
export async function loadOptionalPackage(
  name: OptionalPackage,
  projectFolder: string | undefined,
): Promise<unknown> {
  const inProject = projectFolder && resolveFrom(projectFolder, name);
  if (inProject) return import(pathToFileURL(inProject).href);
  try {
    return await import(name);
  } catch (error) {
    if (!isMissing(error, name)) throw error;
    throw new SetupError(
      `This model needs the package ${name}, which is not installed. Run this in the project's folder: npm install ${INSTALL[name]}`,
      { cause: error },
    );
  }
}

function resolveFrom(folder: string, name: string): string | undefined {
  try {
    return createRequire(join(folder, "agent.js")).resolve(name);
  } catch {
    // Not in the project: Parley's own installation may have it.
    return undefined;
  }
}

/** A package that is there but lacks one of its own is broken, not missing. */
function isMissing(error: unknown, name: string): boolean {
  return (
    error instanceof Error &&
    "code" in error &&
    error.code === "ERR_MODULE_NOT_FOUND" &&
    error.message.includes(`'${name}'`)
  );
}
