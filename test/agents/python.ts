/** Servers of agents in Python, each with its packages in an environment of its own. */

import { execFileSync, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after } from "node:test";
import { pythonVersion } from "../support/litellm-proxy.ts";
import { twice } from "../support/twice.ts";
import { Recorder } from "./recorder.ts";

/** What they speak, and the folder of an agent of Parley's that asks them. */
const PROTOCOLS = { "AG-UI": "test/agents/ag-ui", Responses: "test/agents/responses" };

export interface PythonServer {
  speaks?: "Responses";
  /** Where it is below its origin. */
  path?: string;
  /** Where an agent of it is whose model does not stream, if there can be one. */
  whole?: string;
  /** Whether it has a memory of its own. */
  remembers?: true;
  /** Whether it asks before a tool runs. */
  asks?: false;
  /** Whether its model gets to know why a person has declined. */
  hearsWhy?: false;
  /** Whether one no is a no to all. */
  decidesAlike?: true;
}

/** By their folders. */
export const PYTHON: Record<string, PythonServer> = {
  pydantic: {},
  langgraph: { whole: "whole", remembers: true },
  agno: { path: "agui", remembers: true },
  strands: { whole: "whole", hearsWhy: false },
  adk: { whole: "whole", remembers: true, hearsWhy: false },
  microsoft: { hearsWhy: false, decidesAlike: true },
  crewai: { whole: "whole", asks: false },
  mlflow: { speaks: "Responses", path: "responses", whole: "responses" },
  "openai-agents": { speaks: "Responses", path: "responses", whole: "responses" },
};

const protocolOf = (name: string) => PYTHON[name]?.speaks ?? "AG-UI";

export const folderOf = (name: string) => PROTOCOLS[protocolOf(name)];

export const titleOf = (name: string) => `${name} by ${protocolOf(name)}`;

const [isOfPython, wanted] = /^python(?::(.+))?$/.exec(process.env.AGENTS ?? "") ?? [];

/** Whether nothing else is tried. */
export const isPythonAlone = isOfPython !== undefined;

const ALL = Object.keys(PYTHON);

/** Those that this run tries. */
export const SERVERS = wanted?.split(",") ?? (process.env.AGENTS === "short" ? ["pydantic", "langgraph"] : ALL);

const unknown = SERVERS.filter((name) => !ALL.includes(name));
if (unknown.length > 0) throw new Error(`AGENTS names ${unknown}; the servers in Python are ${ALL.join(", ")}.`);

/** Such as 3.11, unless there is no python3. */
export const PYTHON_VERSION = await pythonVersion();

const THANKS = [{ id: "m", role: "user", content: "thanks" }];

/** A message over either protocol. */
const FIRST = {
  method: "POST",
  headers: { "content-type": "application/json", accept: "text/event-stream" },
  body: JSON.stringify({
    ...{ input: THANKS.map(({ role, content }) => ({ role, content })), stream: true },
    ...{ threadId: "t", runId: "r", state: {}, messages: THANKS, tools: [], context: [], forwardedProps: {} },
  }),
};

/** What stands before those that have started. */
export const RECORDERS = new Map<string, Recorder>();

/** Starts a server in `folder`. */
export async function startPython(name: string, folder: string, model: string): Promise<string> {
  const python = join(folder, name, "bin/python");
  execFileSync("python3", ["-m", "venv", join(folder, name)], { stdio: "inherit" });
  const list = join(folderOf(name), name, "requirements.txt");
  const lines = readFileSync(list, "utf8").trim().split("\n");
  const newest = ["--upgrade", ...lines.map((line) => line.replace(/==.*/, ""))];
  const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
  const packages = process.env.AGENTS === "newest" ? newest : ["-r", list];
  await twice(() => execFileSync(python, [...pip, ...packages]));
  const child = spawn(python, [join(folderOf(name), name, "agent.py")], {
    env: {
      ...{ ...process.env, OPENAI_API_KEY: "mock", OPENAI_BASE_URL: model, NO_PROXY: "*" },
      // They would look for what they do not find on a machine without a network.
      ...{ LITELLM_LOCAL_MODEL_COST_MAP: "True", OTEL_SDK_DISABLED: "true", CREWAI_DISABLE_TELEMETRY: "true" },
    },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const kill = () => child.kill("SIGKILL");
  process.once("exit", kill);
  after(kill);
  const said: string[] = [];
  for await (const line of createInterface(child.stderr)) {
    said.push(line);
    const [url] = /http:\/\/127\.0\.0\.1:\d+/.exec(line) ?? [];
    if (url === undefined) continue;
    child.stderr.resume();
    const recorder = new Recorder(name);
    RECORDERS.set(name, recorder);
    const address = `${await recorder.start(url)}/${PYTHON[name]?.path ?? ""}`;
    // Some load what they need with their first request, for longer than a test waits.
    await (await fetch(address, { ...FIRST, signal: AbortSignal.timeout(120_000) })).text();
    return address;
  }
  throw new Error(`the agent in ${name} did not start: ${said.slice(-20).join("\n")}`);
}
