/** Servers of Python agents, each with its packages in its own virtual environment. */

import { execFileSync, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after } from "node:test";
import { pythonVersion } from "../support/litellm-proxy.ts";
import { twice } from "../support/twice.ts";
import { Recorder } from "./recorder.ts";

/** The servers' protocols, and the folders of the Parley agents that call them. */
const PROTOCOLS = { "AG-UI": "test/agents/ag-ui", Responses: "test/agents/responses" };

export interface PythonServer {
  speaks?: "Responses";
  /** Path of the agent below the origin. */
  path?: string;
  /** Path of an agent whose model does not stream, if there can be one. */
  whole?: string;
  /** Whether it stores conversations itself. */
  remembers?: true;
  /** Whether it asks for approval before a tool runs. */
  asks?: false;
  /** Whether its model gets the reason of a refusal. */
  hearsWhy?: false;
  /** Whether one refused call refuses all. */
  decidesAlike?: true;
}

/** The servers, by the names of their folders. */
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

/** Whether this run only has Python servers. */
export const isPythonAlone = isOfPython !== undefined;

const ALL = Object.keys(PYTHON);

/** The servers in this run. */
export const SERVERS = wanted?.split(",") ?? (process.env.AGENTS === "short" ? ["pydantic", "langgraph"] : ALL);

const unknown = SERVERS.filter((name) => !ALL.includes(name));
if (unknown.length > 0) throw new Error(`AGENTS names ${unknown}; the servers in Python are ${ALL.join(", ")}.`);

/** Such as "3.11"; `undefined` without a python3. */
export const PYTHON_VERSION = await pythonVersion();

const THANKS = [{ id: "m", role: "user", content: "thanks" }];

/** A request that is valid in both protocols. */
const FIRST = {
  method: "POST",
  headers: { "content-type": "application/json", accept: "text/event-stream" },
  body: JSON.stringify({
    ...{ input: THANKS.map(({ role, content }) => ({ role, content })), stream: true },
    ...{ threadId: "t", runId: "r", state: {}, messages: THANKS, tools: [], context: [], forwardedProps: {} },
  }),
};

/** The recorders in front of the started servers. */
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
      // Otherwise they look up data online, which takes long without a network.
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
    // Some servers load packages during their first request, which takes longer than a test waits.
    await (await fetch(address, { ...FIRST, signal: AbortSignal.timeout(120_000) })).text();
    return address;
  }
  throw new Error(`the agent in ${name} did not start: ${said.slice(-20).join("\n")}`);
}
