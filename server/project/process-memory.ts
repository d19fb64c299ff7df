/** Finds what an agent of a framework keeps only in the memory of its process, as far as its own sources show it. */

import { readFileSync } from "node:fs";
import { basename, dirname, extname, join, relative } from "node:path";
import { AGENT_FILES } from "./agent-files.ts";

/** Memories of LangGraph, LangChain, the OpenAI Agents SDK and Mastra. */
const MEMORY =
  /\bnew (MemorySaver|InMemoryStore|InMemoryChatMessageHistory|BufferMemory|MemorySession)\b|\bnew (LibSQLStore)\b[^)]*:memory:/;

const COMMENTS = /\/\*[\s\S]*?\*\/|(?:^|\s)\/\/.*/gm;

const IMPORTS = /\b(?:from|import)\s*\(?\s*["'](\.[^"']+)["']/g;

/** More files than an agent has. */
const MAX_FILES = 500;

/** A sentence about the first such memory in the agent's file, or in a file of the project that it imports. */
export function memoryInProcess(folder: string): string | undefined {
  const files = AGENT_FILES.map((name) => join(folder, name));
  const seen = new Set<string>();
  for (const file of files) {
    if (seen.has(file) || seen.size > MAX_FILES) continue;
    seen.add(file);
    const source = read(file)?.replace(COMMENTS, "");
    if (source === undefined) continue;
    const [, memory, store] = MEMORY.exec(source) ?? [];
    if (memory !== undefined || store !== undefined) return sentence(relative(folder, file), memory ?? store ?? "");
    for (const [, path = ""] of source.matchAll(IMPORTS)) files.push(...candidates(join(dirname(file), path)));
  }
  return undefined;
}

function sentence(file: string, memory: string): string {
  return `${file} makes a ${memory}: what the agent remembers in it ends with this process, and another process does not have it. Keep it in a database, or give the agent the messages each time.`;
}

/** The files that an import may refer to. */
function candidates(path: string): string[] {
  const stem = join(dirname(path), basename(path, extname(path)));
  return [
    path,
    `${stem}.ts`,
    `${stem}.mts`,
    `${path}.ts`,
    `${path}.js`,
    join(path, "index.ts"),
    join(path, "index.js"),
  ];
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
