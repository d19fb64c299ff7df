/** LiteLLM's proxy as PyPI has it, in a virtual environment that outlives the run. */

import { execFile, spawn } from "node:child_process";
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

/** Pinned: what is proved is proved of this version, which docs/providers.md names. */
export const LITELLM_VERSION = "1.106.2";

/** LiteLLM reaches Vertex AI only with google-auth. */
const PACKAGES = [`litellm[proxy]==${LITELLM_VERSION}`, "google-auth==2.62.2"];

const INSTALL_MS = 10 * 60_000;

/** "3.12", or `undefined` where there is no Python 3. */
export async function pythonVersion(): Promise<string | undefined> {
  const program = 'import sys; print(".".join(map(str, sys.version_info[:2])))';
  try {
    const { stdout } = await promisify(execFile)("python3", ["-c", program]);
    return stdout.trim();
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

/**
 * Path of a Python that has LiteLLM. Installs it with the first call on a machine, which takes some minutes
 * and 750 MB in the user's cache folder, and says so.
 */
export async function installLiteLlm(version: string): Promise<string> {
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "parley-test");
  const names = PACKAGES.join(" ");
  const folder = join(cache, `${names.replace(/\W+/g, "-")}-python-${version}`);
  const python = join(folder, "bin", "python");
  if (existsSync(python)) return python;
  console.log(`Installing ${names} into ${folder}, once: this can take some minutes.`);
  // What is left when the Python that it was made with is gone.
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(cache, { recursive: true });
  const draft = `${folder}.${process.pid}`;
  try {
    await run("python3", ["-m", "venv", draft]);
    const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", ...PACKAGES];
    await run(join(draft, "bin", "python"), pip);
    // Only a whole installation gets the name. Scripts in `bin` know the old one: use `python -m`.
    moveInto(draft, folder);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
  console.log(`Installed ${names}.`);
  return python;
}

function moveInto(draft: string, folder: string): void {
  try {
    renameSync(draft, folder);
  } catch (error) {
    // Another run may have been faster.
    if (!existsSync(folder)) throw error;
  }
}

function run(command: string, args: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ["ignore", "inherit", "inherit"], timeout: INSTALL_MS });
    child.once("error", reject);
    child.once("exit", (code, signal) => {
      if (code === 0) resolve();
      else reject(new Error(`${command} ${args.join(" ")} ended with ${code ?? signal}`));
    });
  });
}
