/** Sends messages to a server whose agent has tools of MCP servers. */

import type { McpServerDefinition } from "../../server/agent/mcp-definition.ts";
import type { ToolResultEvent } from "../../server/protocol/events.ts";
import { send } from "../support/chat-transports.ts";
import { DEADLINE_MS } from "../support/deadline.ts";
import { call, say, type Turn } from "../support/scripted-provider.ts";
import { type Cleanup, type ServerOptions, startServer, type TestServer } from "../support/start-server.ts";

/** The turns of `times` messages, each of which calls these tools. */
export const calling = (times: number, ...tools: (string | [name: string, args: object])[]): Turn[] =>
  Array.from({ length: times }, () => [
    tools.map((tool, index) => (typeof tool === "string" ? call(`c${index}`, tool) : call(`c${index}`, ...tool))),
    [say("Done.")],
  ]).flat();

export function startWith(
  t: Cleanup,
  mcp: Record<string, McpServerDefinition>,
  { agent, ...options }: ServerOptions = {},
): Promise<TestServer> {
  return startServer(t, { ...options, agent: { mcp, ...agent } });
}

export type Result = ToolResultEvent["data"];

/** The tool results of one message, as a client gets them. */
export async function resultsOf(t: Cleanup, server: TestServer): Promise<Result[]> {
  const { events } = await send.sse(t, server, { message: "Hi" });
  return events.flatMap((event) => (event.type === "tool_result" ? [event.data] : []));
}

export async function outputOf(t: Cleanup, server: TestServer): Promise<string> {
  const [result] = await resultsOf(t, server);
  return result?.output ?? "no result";
}

/** Repeats the check until it succeeds, at most for `DEADLINE_MS`. */
export async function eventually(holds: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const until = performance.now() + DEADLINE_MS;
  while (!(await holds())) {
    if (performance.now() > until) throw new Error(`${what} did not come`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Names of the tools in the model's last request. */
export const toolsOf = ({ model }: TestServer): string[] =>
  (model.asked.at(-1)?.start.setup.tools ?? []).map(({ name }) => name);

/** The log's records about a tool server. */
export const saidOf = ({ log }: TestServer): string[] => log.filter((line) => line.includes("tool server"));
