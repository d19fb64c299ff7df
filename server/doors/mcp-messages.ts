/** Parses the messages of MCP clients: one message of JSON-RPC, of any version of the specification. */

import { invalidRequest } from "../protocol/errors.ts";
import { isRecord } from "../protocol/json.ts";
import type { McpMessage, RequestId } from "../routes/message.ts";

const META = "io.modelcontextprotocol";

/** @throws ApiError `invalid_request` for anything but a request or a notification of JSON-RPC */
export function parseMcpMessage(body: unknown): McpMessage {
  if (Array.isArray(body)) throw invalidRequest("", "Send one message of JSON-RPC at a time, not a list of them.");
  if (!isRecord(body) || body.jsonrpc !== "2.0" || typeof body.method !== "string") {
    throw invalidRequest("", 'The body must be a request of JSON-RPC: {"jsonrpc": "2.0", "id": 1, "method": "…"}.');
  }
  const { id, method } = body;
  if (id !== undefined && !isRequestId(id)) throw invalidRequest("/id", "id must be a whole number or a short string.");
  const params = isRecord(body.params) ? body.params : {};
  const meta = isRecord(params._meta) ? params._meta : {};
  return {
    id,
    method,
    name: textIn(params.name),
    arguments: isRecord(params.arguments) ? params.arguments : {},
    version: textIn(meta[`${META}/protocolVersion`]),
    hasCapabilities: isRecord(meta[`${META}/clientCapabilities`]),
    proposed: textIn(params.protocolVersion),
    progressToken: isRequestId(meta.progressToken) ? meta.progressToken : undefined,
    cancels: isRequestId(params.requestId) ? params.requestId : undefined,
  };
}

/** Ids and tokens of a client are repeated in each message to it. */
const MAX_ID_CHARS = 1000;

function isRequestId(value: unknown): value is RequestId {
  return typeof value === "string" ? value.length <= MAX_ID_CHARS : Number.isSafeInteger(value);
}

function textIn(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
