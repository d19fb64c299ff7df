/** A LiteLLM proxy in its own process, configured as in its documentation. */

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { closeAll } from "./at-end.ts";
import { within } from "./deadline.ts";
import type { Cleanup } from "./start-server.ts";
import { twice } from "./twice.ts";

/** A row of `model_list`: the model name for clients, and LiteLLM's parameters. */
export interface LiteLlmModel {
  model_name: string;
  litellm_params: Readonly<Record<string, unknown>>;
}

export interface LiteLlm {
  /** In the form of `LITELLM_BASE_URL`. */
  readonly url: string;
  readonly key: string;
}

const START_MS = 180_000;
const KEY = "sk-parley-test";

/** Calls the entry point directly: the script in `bin` contains the path of its original installation. */
const COMMAND = "from litellm import run_server; run_server()";

/** Keeps LiteLLM offline: otherwise it fetches prices and header names, and sends telemetry. */
const OFFLINE = {
  LITELLM_LOCAL_MODEL_COST_MAP: "True",
  LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS: "True",
  NO_PROXY: "*",
  AWS_EC2_METADATA_DISABLED: "true",
};

/** Starts the proxy on a free loopback port; it is always stopped at the end of the test. */
export async function startLiteLlm(t: Cleanup, python: string, models: readonly LiteLlmModel[]): Promise<LiteLlm> {
  const folder = mkdtempSync(join(tmpdir(), "parley-litellm-"));
  const config = join(folder, "config.yaml");
  writeFileSync(config, configOf(models));
  const args = ["-c", COMMAND, "--config", config, "--host", "127.0.0.1", "--port", "0"];
  const child = spawn(python, [...args, "--telemetry", "False"], {
    cwd: folder,
    // Excludes the developer's own settings: no keys, no proxies, no home folder with `.aws`.
    env: { PATH: process.env.PATH ?? "", HOME: folder, ...OFFLINE },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exited = once(child, "exit");
  const kill = () => child.kill("SIGKILL");
  process.once("exit", kill);
  t.after(async () => {
    kill();
    await exited;
    process.off("exit", kill);
    rmSync(folder, { recursive: true, force: true });
  });
  let printed = "";
  const listening = new Promise<string>((resolve, reject) => {
    const read = (text: string) => {
      printed += text;
      const [, url] = /Uvicorn running on (http:\S+)/.exec(printed) ?? [];
      if (url !== undefined) resolve(url);
    };
    child.stdout.setEncoding("utf8").on("data", read);
    child.stderr.setEncoding("utf8").on("data", read);
    child.once("close", () => reject(new Error(`LiteLLM ended: ${printed}`)));
  });
  const url = await within(listening, "LiteLLM's address", START_MS);
  return { url: `${url}/v1`, key: KEY };
}

/** JSON is also valid YAML. */
function configOf(models: readonly LiteLlmModel[]): string {
  return JSON.stringify({
    model_list: models,
    // No retries, so that failures are visible. OpenAI's models return reasoning summaries only on request.
    litellm_settings: { num_retries: 0, telemetry: false, reasoning_auto_summary: true },
    router_settings: { num_retries: 0, disable_cooldowns: true },
    // Otherwise LiteLLM now and then asks OpenAI for model limits, which would disturb the tests' request counts.
    general_settings: { master_key: KEY, disable_model_info_refresh: true },
  });
}

// LiteLLM's proxy from PyPI, in a virtual environment that is kept between runs.

/** Pinned: docs/providers.md names the version that the tests cover. */
export const LITELLM_VERSION = "1.106.2";

/** LiteLLM reaches Vertex AI only with google-auth. */
const PACKAGES = [`litellm[proxy]==${LITELLM_VERSION}`, "google-auth==2.62.2"];

const INSTALL_MS = 10 * 60_000;

/** Such as "3.12"; `undefined` without Python 3. */
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
 * Path of a Python with LiteLLM. The first call on a machine installs it, which takes some minutes and 750 MB in the
 * user's cache folder, and prints a message.
 */
export async function installLiteLlm(version: string): Promise<string> {
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "parley-test");
  const names = PACKAGES.join(" ");
  const folder = join(cache, `${names.replace(/\W+/g, "-")}-python-${version}`);
  const python = join(folder, "bin", "python");
  if (existsSync(python)) return python;
  console.log(`Installing ${names} into ${folder}, once: this can take some minutes.`);
  // Removes an environment whose Python no longer exists.
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(cache, { recursive: true });
  const draft = `${folder}.${process.pid}`;
  try {
    await run("python3", ["-m", "venv", draft]);
    const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", ...PACKAGES];
    await twice(() => run(join(draft, "bin", "python"), pip));
    // Only a complete installation gets the final name. Scripts in `bin` contain the old path: use `python -m`.
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
    // Another run may have finished first.
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

/** A clean-up context that the test ends itself, for helpers that expect a test context. */
export interface Lifetime extends Cleanup {
  /** Runs clean-ups in reverse order, even after a failure; then throws the first failure. */
  end(): Promise<void>;
}

export function openLifetime(): Lifetime {
  const cleanups: (() => unknown)[] = [];
  return {
    after(cleanup?: unknown) {
      if (typeof cleanup === "function") cleanups.unshift(() => cleanup());
    },
    end: () => closeAll(cleanups.splice(0)),
  };
}
