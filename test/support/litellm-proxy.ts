/** A LiteLLM proxy as its own process, configured as its documentation says. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { within } from "./deadline.ts";
import type { Cleanup } from "./start-server.ts";

/** A row of `model_list`: the name that clients say, and what LiteLLM makes of it. */
export interface LiteLlmModel {
  model_name: string;
  litellm_params: Readonly<Record<string, unknown>>;
}

export interface LiteLlm {
  /** As `LITELLM_BASE_URL` takes it. */
  readonly url: string;
  readonly key: string;
}

const START_MS = 60_000;
const KEY = "sk-parley-test";

/** The command's entry point; its script in `bin` would hold the path of where it was installed. */
const COMMAND = "from litellm import run_server; run_server()";

/** What keeps it on this machine: it would fetch prices and header names, and send telemetry. */
const OFFLINE = {
  LITELLM_LOCAL_MODEL_COST_MAP: "True",
  LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS: "True",
  NO_PROXY: "*",
  AWS_EC2_METADATA_DISABLED: "true",
};

/** Starts the proxy on a free port of the loopback address; it is gone after the test, in any case. */
export async function startLiteLlm(t: Cleanup, python: string, models: readonly LiteLlmModel[]): Promise<LiteLlm> {
  const folder = mkdtempSync(join(tmpdir(), "parley-litellm-"));
  const config = join(folder, "config.yaml");
  writeFileSync(config, configOf(models));
  const args = ["-c", COMMAND, "--config", config, "--host", "127.0.0.1", "--port", "0"];
  const child = spawn(python, [...args, "--telemetry", "False"], {
    cwd: folder,
    // Nothing of the developer's own settings: no keys, no proxies, no home with a `.aws` in it.
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

/** JSON is YAML, too. */
function configOf(models: readonly LiteLlmModel[]): string {
  return JSON.stringify({
    model_list: models,
    // A request that fails must be seen to fail, not be tried again behind our back.
    // OpenAI tells its models' thoughts, as summaries, only where they are asked for.
    litellm_settings: { num_retries: 0, telemetry: false, reasoning_auto_summary: true },
    router_settings: { num_retries: 0, disable_cooldowns: true },
    // It would ask OpenAI's models for their limits, now and then, among the requests that tests count.
    general_settings: { master_key: KEY, disable_model_info_refresh: true },
  });
}
