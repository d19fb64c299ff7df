/** The table of doors: endpoints of other protocols, each loaded if its setting enables it. */

import { SETTINGS } from "../config/settings.ts";
import type { DoorPlace, Routes } from "../http/routes.ts";
import type { ApiError } from "../protocol/errors.ts";
import type { ParserName } from "../routes/message.ts";
import { PARSERS } from "../routes/parse-message.ts";
import type { Service } from "../routes/service.ts";

interface DoorRow {
  /** A setting that is `on` or `off`. */
  setting: "openaiApi" | "mcp";
  path: RegExp;
  load(): Promise<{ routesOf(service: Service): Routes; errorBody(error: ApiError): object }>;
  /** Loads the parser of its messages, which is all that a thread for large messages needs. */
  loadParser(): Promise<unknown>;
}

/** By the names of their parsers. */
const DOORS: Partial<Record<ParserName, DoorRow>> = {
  openai: {
    setting: "openaiApi",
    path: /^\/v1\//,
    load: () => import("./openai.ts"),
    loadParser: async () => (await import("./openai-messages.ts")).parseChatCompletion,
  },
  mcp: {
    setting: "mcp",
    path: /^\/mcp$/,
    load: () => import("./mcp.ts"),
    loadParser: async () => (await import("./mcp-messages.ts")).parseMcpMessage,
  },
};

/** Adds the parser of this door to `PARSERS`, unless it is there. */
export async function loadParser(name: ParserName): Promise<void> {
  if (!Object.hasOwn(PARSERS, name)) Object.assign(PARSERS, { [name]: await DOORS[name]?.loadParser() });
}

/** The paths of all doors, and the routes of those that are enabled. */
export async function openDoors(service: Service): Promise<{ doors: DoorPlace[]; routes: Routes }> {
  const routes: Routes = {};
  const open = async ([name, { setting, path, load }]: [string, DoorRow]): Promise<DoorPlace> => {
    if (!service.settings[setting])
      return { path, hint: `Nothing is served here unless ${SETTINGS[setting].name} is on.` };
    const [{ routesOf, errorBody }] = await Promise.all([load(), loadParser(name as ParserName)]);
    Object.assign(routes, routesOf(service));
    return { path, errorBody };
  };
  return { doors: await Promise.all(Object.entries(DOORS).map(open)), routes };
}
