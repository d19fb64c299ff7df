/** The MCP server `program.mjs` as an agent's setting, and its records. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { McpProgram } from "../../server/agent/mcp-definition.ts";
import { REPOSITORY } from "../support/command.ts";
import type { Cleanup } from "../support/start-server.ts";
import { temporaryProject } from "../support/temporary-project.ts";

export function program(t: Cleanup, more: Partial<McpProgram> = {}) {
  const folder = temporaryProject(t, { "notes.txt": "" });
  const file = join(folder, "notes.txt");
  const notes = () => readFileSync(file, "utf8").split("\n").slice(0, -1);
  return {
    definition: { command: process.execPath, args: [join(REPOSITORY, "test/mcp/program.mjs"), file], ...more },
    /** Process ids of all started processes, in order. */
    pids: () => notes().flatMap((line) => (line.startsWith("pid ") ? [Number(line.slice(4))] : [])),
    calls: () => notes().filter((line) => line.startsWith("call ")).length,
  };
}

/** Whether a process exists, even if it is stopped. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
