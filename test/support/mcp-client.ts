/** The official MCP client, connected to a server of ours. */

import { Client, StreamableHTTPClientTransport, type VersionNegotiationMode } from "@modelcontextprotocol/client";
import { atEnd } from "./at-end.ts";
import type { Cleanup } from "./start-server.ts";

export const KEY = "a-key-of-more-than-twenty-characters";

/** Opens the MCP door with this key. */
export const MCP_ENV = { PARLEY_MCP: "on", PARLEY_API_KEY: KEY };

/** Both generations of the MCP specification. */
export const ERAS = { "2025": "legacy", "2026": { pin: "2026-07-28" } } as const satisfies Record<
  string,
  VersionNegotiationMode
>;

export interface McpClientOptions {
  mode?: VersionNegotiationMode;
  /** In addition to the key. */
  headers?: Record<string, string>;
  path?: string;
}

/** Connects; disconnects at the end of the test. */
export async function connectMcp(
  t: Cleanup,
  { url }: { url: string },
  { mode = "legacy", headers = {}, path = "/mcp" }: McpClientOptions = {},
): Promise<Client> {
  const client = new Client({ name: "a test", version: "1" }, { versionNegotiation: { mode } });
  const requestInit = { headers: { authorization: `Bearer ${KEY}`, ...headers } };
  await client.connect(new StreamableHTTPClientTransport(new URL(url + path), { requestInit }));
  atEnd(t, () => client.close());
  return client;
}

/** The result of a tool call. */
export interface ToolAnswer {
  text: string;
  isError: boolean;
  answer: string | undefined;
  conversation: string | undefined;
}

/** Calls the tool. */
export async function ask(
  client: Client,
  message: unknown,
  conversation?: unknown,
  options: Parameters<Client["callTool"]>[1] = {},
): Promise<ToolAnswer> {
  const { content, isError, structuredContent } = await client.callTool(
    { name: "ask", arguments: { message, ...(conversation === undefined ? {} : { conversation }) } },
    options,
  );
  const [first] = content;
  const { answer, conversation: id } = (structuredContent ?? {}) as { answer?: string; conversation?: string };
  return { text: first?.type === "text" ? first.text : "", isError: isError === true, answer, conversation: id };
}
