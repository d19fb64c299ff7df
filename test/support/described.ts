/**
 * Checks the requests and responses of test servers against `GET /openapi.json`: each accepted request and each
 * response must match its schema, and responses may have no undescribed fields.
 */

import assert from "node:assert/strict";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { type Schema, Validator } from "@cfworker/json-schema";
import { ALL_MEDIA_TYPES, TEXT_TYPES, type TextType } from "../../server/protocol/attachments.ts";
import { openApi } from "../../server/protocol/openapi.ts";
import { PARSERS } from "../../server/routes/parse-message.ts";
import { atEnd } from "./at-end.ts";
import type { Cleanup } from "./start-server.ts";

interface Document {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
}

export interface Operation {
  responses: Record<string, { content?: Record<string, { schema: Schema }> }>;
}

/** Describes every route, with limits higher than any test reaches. */
const DOCUMENT = openApi({
  title: "Any",
  version: "1",
  basePath: "",
  requiresKey: true,
  hasUsers: true,
  open: { feedback: true, mcp: true, metrics: true, openai: true },
  limits: {
    bodyBytes: Number.MAX_SAFE_INTEGER,
    messageChars: Number.MAX_SAFE_INTEGER,
    attachments: Number.MAX_SAFE_INTEGER,
    fileTypes: [...ALL_MEDIA_TYPES, ...(Object.keys(TEXT_TYPES) as TextType[])],
  },
}) as Document;

/** Clients ignore unknown fields. Here each field has to be described. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== "object" || schema === null) return schema;
  const entries = Object.entries(schema).map(([key, value]) => [key, closed(value)]);
  const inside = Object.fromEntries(entries);
  const isObject = inside.type === "object" && "properties" in inside && !("additionalProperties" in inside);
  return isObject ? { ...inside, additionalProperties: false } : inside;
}

const { schemas } = DOCUMENT.components;
const REQUESTS = ["ChatRequest", "SocketRequest", "Attachment", "ApprovalDecision", "FeedbackRequest"];
const ANSWERS = Object.fromEntries(
  Object.entries(schemas).map(([name, schema]) => [name, REQUESTS.includes(name) ? schema : closed(schema)]),
);

/** Rewrites references between schemas, which are validated outside of their document. */
const inDefinitions = <Value>(value: Value): Value =>
  JSON.parse(JSON.stringify(value).replaceAll("#/components/schemas/", "#/$defs/"));

const validators = new Map<string, Validator>();

function problemOf(schema: object, definitions: object, value: unknown): string | undefined {
  const key = JSON.stringify(schema) + (definitions === ANSWERS);
  const whole = () => inDefinitions({ ...schema, $defs: definitions }) as Schema;
  const validator = validators.get(key) ?? new Validator(whole(), "2020-12", false);
  validators.set(key, validator);
  const { valid, errors } = validator.validate(value);
  if (valid) return undefined;
  const [deepest] = [...errors].sort((a, b) => b.instanceLocation.length - a.instanceLocation.length);
  return `${deepest?.instanceLocation}: ${deepest?.error} in ${JSON.stringify(value).slice(0, 500)}`;
}

const problems = new Set<string>();

function hold(what: string, schema: object, value: unknown, definitions: object = ANSWERS): void {
  const problem = problemOf(schema, definitions, value);
  if (problem !== undefined) problems.add(`${what}: ${problem}`);
}

/** Larger texts are not checked, to save time. */
const MOST_CHARS = 64 * 1024;

/** Validates an event. `seen` counts the events per type: only the first few of each are checked. */
export function holdEvent(text: string, seen: Map<string, number>): void {
  if (text.length > MOST_CHARS) return;
  const event = JSON.parse(text);
  const count = seen.get(event.type) ?? 0;
  seen.set(event.type, count + 1);
  if (count < 5) hold("an event", { $ref: "#/components/schemas/Event" }, event);
}

const named = (name: string) => ({ $ref: `#/components/schemas/${name}` });

/** The server accepts media types in upper case, but the document describes only lower case. */
const inSmallLetters = (key: string, value: unknown) =>
  key === "mime_type" && typeof value === "string" ? value.toLowerCase() : value;
const promised = (body: unknown) => JSON.parse(JSON.stringify(body, inSmallLetters));

// Checks each request that the parsers accept.
const { chat, socket } = PARSERS;
Object.assign(PARSERS, {
  chat(...args: Parameters<typeof chat>) {
    const parsed = chat(...args);
    hold("a request", named("ChatRequest"), promised(args[0]), schemas);
    return parsed;
  },
  socket(...args: Parameters<typeof socket>) {
    const parsed = socket(...args);
    hold("a message on a socket", named("SocketRequest"), promised(args[0]), schemas);
    return parsed;
  },
});

/** Checks a server's responses against the document; fails at the end of the test if one does not match. */
export function holdToDescription(t: Cleanup, http: Server, basePath: string): void {
  http.prependListener("request", (req: IncomingMessage, res: ServerResponse) => {
    const [path = ""] = (req.url ?? "").slice(basePath.length).split("?");
    const operation = operationOf(req.method ?? "", path);
    if (operation !== undefined) readAnswer(res, operation, path);
  });
  atEnd(t, async () => {
    const found = [...problems];
    problems.clear();
    assert.deepEqual(found, [], "what /openapi.json does not say");
  });
}

function operationOf(method: string, path: string): Operation | undefined {
  for (const [template, operations] of Object.entries(DOCUMENT.paths)) {
    const pattern = new RegExp(`^${template.replaceAll(".", "\\.").replace(/\{\w+\}/g, "[^/]+")}$`);
    if (pattern.test(path)) return operations[method.toLowerCase()];
  }
  return undefined;
}

/** Reads the response as it is written, without changing it. */
function readAnswer(res: ServerResponse, operation: Operation, path: string): void {
  const seen = new Map<string, number>();
  const { write, end } = res;
  const read = (chunk: unknown) => {
    if (typeof chunk !== "string" || chunk.length > MOST_CHARS) return;
    const type = String(res.getHeader("content-type") ?? "");
    const { statusCode: status } = res;
    const answer = operation.responses[status] ?? operation.responses[`${String(status)[0]}XX`];
    if (answer === undefined) problems.add(`${path} has no answer of status ${status}`);
    else if (type.startsWith("text/event-stream")) {
      // Doors have event types of their own.
      if (!path.startsWith("/api/")) return;
      // Splits at "\n" only: JSON texts may contain other line separators.
      for (const line of chunk.split("\n")) if (line.startsWith("data: ")) holdEvent(line.slice(6), seen);
    } else if (type.startsWith("application/json")) {
      const schema = answer.content?.["application/json"]?.schema;
      if (schema === undefined) problems.add(`${path} has no JSON with status ${status}`);
      else hold(`${path}, status ${status}`, schema, JSON.parse(chunk));
    }
  };
  Object.assign(res, {
    write(...args: unknown[]) {
      read(args[0]);
      return Reflect.apply(write, res, args);
    },
    end(...args: unknown[]) {
      read(args[0]);
      return Reflect.apply(end, res, args);
    },
  });
}
