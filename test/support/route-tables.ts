/** Reads the route tables from their source files. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { REPOSITORY } from "./command.ts";

/** `METHOD /path` of each row. */
export function routesIn(...files: string[]): string[] {
  const text = files.map((file) => readFileSync(join(REPOSITORY, file), "utf8")).join("\n");
  return [...text.matchAll(/^ {2,4}"((?:GET|POST|WS) \/[^"]*)"/gm)].map(([, route = ""]) => route);
}

/** Source files of the doors. */
export const doorFiles = (): string[] =>
  readdirSync(join(REPOSITORY, "server/doors")).map((name) => `server/doors/${name}`);
