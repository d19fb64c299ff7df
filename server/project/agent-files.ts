/** The names that an agent's file may have. */

import { existsSync } from "node:fs";
import { join } from "node:path";

/** The first of these files that exists is the agent. */
export const AGENT_FILES = ["agent.ts", "agent.mts", "agent.js", "agent.mjs"];

/** The path of the agent in a folder. */
export const agentFileIn = (folder: string): string | undefined =>
  AGENT_FILES.map((name) => join(folder, name)).find((path) => existsSync(path));
