/** JavaScript agents, with their frameworks' packages. */

import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after } from "node:test";
import { REPOSITORY } from "../support/command.ts";
import type { Cleanup } from "../support/start-server.ts";
import { temporaryProject } from "../support/temporary-project.ts";
import { twice } from "../support/twice.ts";
import { FIRST, type Question, type Row, STEPS } from "./questions.ts";

/** Lists of packages: some versions need Node 22. */
const LISTS = { 20: "test/agents", 22: "test/agents/node-22" } as const;

export type NodeVersion = keyof typeof LISTS;

/** Texts of an agent's source, and their replacements for a model without streaming. */
type Edits = readonly (readonly [text: string, other: string])[];

export interface Agent extends Omit<Row, "name" | "serve" | "serveWhole"> {
  path: string;
  node: NodeVersion;
  /** Whether the agent also runs in the short runs. */
  isShort?: boolean;
  whole?: Edits;
  /** The only questions, in place of all. */
  questions?: Question[];
}

/** An example, which readers copy. */
const example = (name: string, node: NodeVersion): Agent => ({
  path: `examples/${name}`,
  node,
  isShort: true,
  questions: [FIRST],
});

const agent = (name: string, node: NodeVersion, more: Partial<Agent> = {}): Agent => ({
  path: `test/agents/${name}`,
  node,
  ...more,
});

const WHOLE_IN_AI_SDK: Edits = [
  ["import { ToolLoopAgent, tool }", "import { simulateStreamingMiddleware, ToolLoopAgent, tool, wrapLanguageModel }"],
  ['openai("gpt-5.2")', 'wrapLanguageModel({ model: openai("gpt-5.2"), middleware: simulateStreamingMiddleware() })'],
];

const WHOLE_IN_LANGCHAIN: Edits = [['model: "gpt-5.2"', 'model: "gpt-5.2", disableStreaming: true']];

/** An agent with another agent inside a tool. */
const nested = (path: string, node: NodeVersion, more: Partial<Agent> = {}): Agent =>
  agent(path, node, { isShort: true, questions: [STEPS], ...more });

/** An agent used as a tool of another one, which also has a tool that needs approval. */
export const AGENT_AS_TOOL = "test/agents/agent-as-tool";

const STREAMS = { "whole answers": "it cannot turn streaming of its model off" };

const WITHOUT = {
  ...{ "whole answers": "the agent streams its model" },
  pictures: "the agent takes no files",
  approvals: "the agent has no tool that asks; such a graph, and an event of one's own, have tests elsewhere",
};

export const JAVASCRIPT: Record<string, Agent> = {
  "AI SDK 6, the example": example("ai-sdk", 20),
  "OpenAI Agents SDK 0.14, the example": example("openai-agents", 20),
  "LangGraph, the example": example("langgraph", 20),
  "LangGraph with a sub-graph": agent("sub-graph", 20, { isShort: true, without: WITHOUT }),
  "a generator": agent("generator", 20, { isShort: true, without: WITHOUT }),
  "AI SDK 6": agent("ai-sdk", 20, { whole: WHOLE_IN_AI_SDK }),
  "OpenAI Agents SDK 0.14": agent("openai-agents", 20, { isStored: true, without: STREAMS }),
  LangGraph: agent("langgraph", 20, { whole: WHOLE_IN_LANGCHAIN }),
  LangChain: agent("langchain", 20, { whole: WHOLE_IN_LANGCHAIN, decidesAlike: true }),
  "AI SDK 7, the example": example("ai-sdk", 22),
  "OpenAI Agents SDK 0.20, the example": example("openai-agents", 22),
  "AI SDK 7": agent("ai-sdk", 22, { whole: WHOLE_IN_AI_SDK }),
  "OpenAI Agents SDK 0.20": agent("openai-agents", 22, { isStored: true, without: STREAMS }),
  Mastra: agent("mastra", 22, { isShort: true, asksSingly: true, without: STREAMS }),
  "AI SDK 6, an agent within a tool": nested("steps/ai-sdk", 20, { saysProgress: true }),
  "OpenAI Agents SDK 0.14, an agent as a tool": nested("agent-as-tool", 20),
  "LangGraph, an agent within a tool": nested("steps/langgraph", 20, { saysProgress: true }),
  "LangChain, an agent within a tool": nested("steps/langchain", 20),
  "AI SDK 7, an agent within a tool": nested("steps/ai-sdk", 22, { saysProgress: true }),
  "OpenAI Agents SDK 0.20, an agent as a tool": nested("agent-as-tool", 22),
  "Mastra, an agent of an agent": nested("steps/mastra", 22, { saysProgress: true }),
};

export const packagesOf = (node: NodeVersion): Record<string, string> =>
  JSON.parse(readFileSync(join(LISTS[node], "package.json"), "utf8")).dependencies;

const npm = (folder: string, ...args: string[]) =>
  twice(() => execFileSync("npm", [...args, "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: folder }));

/** Folder of the variant whose model does not stream. */
export const wholeOf = (path: string): string => join(path, "whole");

function edited(path: string, edits: Edits): string {
  return edits.reduce(
    (source, [text, other]) => {
      if (!source.includes(text)) throw new Error(`${path} has no ${text}`);
      return source.replace(text, other);
    },
    readFileSync(join(path, "agent.ts"), "utf8"),
  );
}

/** Installs the packages of a list in a new folder, together with these agents. */
export async function install(node: NodeVersion, agents: ReadonlyMap<string, Edits | undefined>): Promise<string> {
  const folder = temporaryProject({ after } as Cleanup, {});
  for (const name of ["package.json", "package-lock.json"]) cpSync(join(LISTS[node], name), join(folder, name));
  const newest = Object.keys(packagesOf(node)).map((name) => `${name}@latest`);
  await (process.env.AGENTS === "newest" ? npm(folder, "install", ...newest) : npm(folder, "ci"));
  symlinkSync(REPOSITORY, join(folder, "node_modules/parley-agent"));
  for (const [path, whole] of agents) {
    cpSync(join(path, "agent.ts"), join(folder, path, "agent.ts"));
    if (whole === undefined) continue;
    mkdirSync(join(folder, wholeOf(path)));
    writeFileSync(join(folder, wholeOf(path), "agent.ts"), edited(path, whole));
  }
  return folder;
}

/** The Node for a list's packages: the current one, if it is new enough. */
export async function nodeFor(node: NodeVersion): Promise<string> {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  if (node === 20 || major > 22 || (major === 22 && minor >= 22)) return process.execPath;
  const folder = temporaryProject({ after } as Cleanup, { "package.json": "{}" });
  const name = `node-${process.platform}-${process.arch}`;
  await npm(folder, "install", `${name}@22`);
  return join(folder, "node_modules", name, "bin/node");
}
