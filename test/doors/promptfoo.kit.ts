/** promptfoo set up as in docs/clients.md, with Parley's traces: npm run test:doors. */

import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { nodeFor } from "../agents/javascript.ts";
import { PROCESS_MS } from "../support/deadline.ts";
import { serve } from "../support/document-commands.ts";
import { freePort } from "../support/free-port.ts";
import { findBlock, readMarkdown } from "../support/markdown-file.ts";
import type { Cleanup } from "../support/start-server.ts";
import { install, npm } from "./install.ts";

const PAGE = readMarkdown("docs/clients.md");
const CONFIG = findBlock(PAGE, "yaml", "prompts:");
const KEY = "a-key-of-the-programs";

const node = await nodeFor(22);
// The optional packages would be 2 GB for other providers.
const folder = await install("promptfoo", undefined, "--omit=optional");
await installBinding();
writeFileSync(join(folder, "tracing.mjs"), findBlock(readMarkdown("docs/deploying.md"), "js", "OTLPTraceExporter"));

/** Installs the optional, system-specific binding of its database in the parent folder, where Node looks next. */
async function installBinding(): Promise<void> {
  const script = 'console.log(require("@neon-rs/load").currentTarget())';
  const target = execFileSync(node, ["-e", script], { cwd: folder, encoding: "utf8" }).trim();
  const { version } = JSON.parse(readFileSync(join(folder, "node_modules/libsql/package.json"), "utf8"));
  const above = join(folder, "..");
  writeFileSync(join(above, "package.json"), '{ "private": true }');
  await npm(above, "install", "--no-package-lock", `@libsql/${target}@${version}`);
}

interface Check {
  assertion: { type: string };
  pass: boolean;
  reason: string;
}

/** Serves the demo agent as the page says, and runs promptfoo with this configuration. */
async function evaluate(t: Cleanup, config: string): Promise<{ code: number; checks: Check[] }> {
  const port = await freePort();
  const command = findBlock(PAGE, "sh", "OTEL_BSP_SCHEDULE_DELAY").trim();
  const env: Record<string, string> = {
    ...(config.includes(KEY) ? { PARLEY_OPENAI_API: "on", PARLEY_API_KEY: KEY } : {}),
    PATH: process.env.PATH ?? "",
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
  };
  const { url } = await serve(t, command, folder, env);
  const path = join(folder, "promptfooconfig.yaml");
  writeFileSync(path, config.replaceAll("http://localhost:8080", url).replace("port: 4318", `port: ${port}`));
  const results = join(folder, "results.json");
  rmSync(results, { force: true });
  const cli = join(folder, "node_modules/promptfoo/dist/src/entrypoint.js");
  const ended = promisify(execFile)(node, [cli, "eval", "--no-cache", "-c", path, "-o", results], {
    cwd: folder,
    timeout: PROCESS_MS,
    env: {
      PATH: process.env.PATH,
      HOME: folder,
      PROMPTFOO_CONFIG_DIR: folder,
      PROMPTFOO_DISABLE_TELEMETRY: "1",
      PROMPTFOO_DISABLE_UPDATE: "1",
      NO_PROXY: "*",
    },
  });
  const { code, stdout, stderr } = await ended.then((said) => ({ ...said, code: 0 })).catch((error) => error);
  assert.ok(existsSync(results), `${code} ${stdout} ${stderr}`);
  const [result] = JSON.parse(readFileSync(results, "utf8")).results.results;
  return { code, checks: result.gradingResult?.componentResults ?? assert.fail(JSON.stringify(result.error)) };
}

test("the assertions of the page hold for the demo agent, those on traces among them", async (t) => {
  const { code, checks } = await evaluate(t, CONFIG);
  assert.deepEqual(
    checks.filter(({ pass }) => !pass),
    [],
  );
  const types = [...CONFIG.matchAll(/\{ type: ([\w:-]+),/g)].map(([, type]) => type);
  assert.deepEqual(
    checks.map(({ assertion }) => assertion.type),
    types,
  );
  assert.equal(types.length, 6);
  assert.equal(code, 0);
});

test("an assertion on a tool that did not run, on requests and on arguments fails", async (t) => {
  const wrong = CONFIG.replace("value: get_weather", "value: get_forecast")
    .replace("max: 2 }", "max: 1 }")
    .replace('=== "Paris"', '=== "Rome"');
  const { code, checks } = await evaluate(t, wrong);
  assert.deepEqual(
    checks.filter(({ pass }) => !pass).map(({ assertion }) => assertion.type),
    ["trajectory:tool-used", "trace-span-count", "javascript"],
  );
  assert.match(checks.find(({ pass }) => !pass)?.reason ?? "", /get_weather/);
  assert.notEqual(code, 0);
});

test("promptfoo's own provider for OpenAI is answered, and sees no tool, as the page says", async (t) => {
  const provider = `providers:
  - id: openai:chat:agent
    config: { apiBaseUrl: http://localhost:8080/v1, apiKey: ${KEY} }
`;
  const config = CONFIG.replace(/^providers:[\s\S]*?(?=^tracing:)/m, provider).replace(
    /^ *- \{ type: javascript.*\n/m,
    "",
  );
  const { checks } = await evaluate(t, config);
  const passed = Object.fromEntries(checks.map(({ assertion, pass }) => [assertion.type, pass]));
  assert.deepEqual([passed.contains, passed["trajectory:tool-used"]], [true, false]);
});
