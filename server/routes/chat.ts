/** `/api/chat`: the answer to one message, as JSON or as Server-Sent Events, and runs by their id. */

import type { IncomingMessage } from "node:http";
import type { Caller } from "../auth/access.ts";
import { type RequestContext, traceHeaders } from "../http/request.ts";
import { sendEventStream, sendJson, whenClosed } from "../http/respond.ts";
import type { CancelResponse, ChatResponse } from "../protocol/chat.ts";
import { ApiError, invalidRequest } from "../protocol/errors.ts";
import {
  type DoneEvent,
  type ErrorEvent,
  isTerminal,
  type NumberedEvent,
  type TerminalEvent,
} from "../protocol/events.ts";
import { encodeFrame } from "../protocol/sse.ts";
import type { RunReader } from "../runs/run-handle.ts";
import type { StartedRun } from "../runs/run-registry.ts";
import type { Door } from "./door.ts";
import { messageRules } from "./parse-message.ts";
import type { Service } from "./service.ts";
import { admitReader, parseMessage, readBody, startMessage, visitOf } from "./start-message.ts";

const CHAT: Door = {
  parser: "chat",
  transport: (isStreamed) => (isStreamed ? "sse" : "json"),
  encoder: () => encodeFrame,
  body: async (reader) => chatResponse(await collectRun(reader)),
};

/** `POST /api/chat` */
export const chat = (service: Service) => answerAt(service, CHAT);

/** The handler of a door: reads the message, starts its run, and answers as a stream or as one body. */
export function answerAt(service: Service, door: Door) {
  return async (context: RequestContext, caller: Caller): Promise<void> => {
    const started = await startRun(service, context, caller, door);
    if (started === undefined) return;
    const { run, agent, asked = {} } = started;
    const answer = { run: run.id, agent, asked };
    if (started.isStreamed) await streamRun(service, context, started, door.encoder(answer));
    else await answerAsJson(context, started, (reader) => door.body(reader, answer));
  };
}

/** Reads the message of a request and starts its run. `undefined`: the client has gone. @throws ApiError */
function startRun(service: Service, context: RequestContext, caller: Caller, door: Door) {
  const { settings } = service;
  const memory = service.memory.openMessage();
  return startMessage(service, { requestId: context.id, trace: traceHeaders(context.req), memory }, async (served) => {
    const rules = { caller, maxBytes: settings.maxBodyBytes, memory };
    const message = await readBody(service, served, context, rules, async (body, sender) => {
      const rulesOf = () => ({ ...messageRules(served, settings, sender), name: door.nameOf?.(context, sender) });
      const parsed = await parseMessage(service, { parser: door.parser, bytes: body }, rulesOf);
      for (const header of Object.entries(door.headers?.(parsed.asked ?? {}) ?? {})) context.res.setHeader(...header);
      return { ...parsed, sender, transport: door.transport(parsed.stream), isStreamed: parsed.stream };
    });
    return context.res.destroyed ? undefined : message;
  });
}

/**
 * Streams a run from the reader's position until its end, or until the client goes away. The reader is closed only when the
 * last byte has been sent: otherwise a shutdown, which waits for open readers, would cut off the rest.
 */
async function streamRun(
  { settings }: Service,
  { res }: RequestContext,
  { run, reader }: StartedRun,
  encode: (event: NumberedEvent) => string = encodeFrame,
): Promise<void> {
  whenClosed(res, () => reader.close());
  await run.started;
  if (res.destroyed) return;
  res.setHeader("x-run-id", run.id);
  const times = { keepAliveMs: settings.keepAliveSeconds * 1000, sendMs: settings.sendSeconds * 1000 };
  await sendEventStream(res, times, reader, encode);
}

async function answerAsJson(
  { res }: RequestContext,
  { run, reader }: StartedRun,
  bodyOf: (reader: RunReader) => Promise<object>,
): Promise<void> {
  whenClosed(res, () => reader.close());
  await run.started;
  const body = await bodyOf(reader).catch((failure: unknown) => {
    if (!res.destroyed) throw failure;
  });
  if (body === undefined || res.destroyed) return;
  res.setHeader("x-run-id", run.id);
  sendJson(res, 200, body);
}

/** The outcome of a whole run. */
export interface CollectedRun {
  /** Absent where the run was ended without an answer. */
  last: TerminalEvent | undefined;
  /** The data of `tool_call` and `tool_result`, merged by the id of the call. */
  calls: ToolCalls;
}

/** Reads a run to its end. */
export async function collectRun(reader: RunReader): Promise<CollectedRun> {
  const calls: ToolCalls = new Map();
  let last: TerminalEvent | undefined;
  for await (const events of reader) {
    for (const event of events) {
      if (event.type === "tool_call" || event.type === "tool_result") {
        // The title of the running call is not that of the finished one.
        const { title: _title, ...begun } = calls.get(event.data.id) ?? {};
        calls.set(event.data.id, { ...begun, ...event.data });
      }
      // An agent with its own `run` may report late that a call waits for the user.
      if (event.type === "tool_approval" && calls.get(event.data.id)?.status === "running") calls.delete(event.data.id);
      if (isTerminal(event)) last = event;
    }
  }
  return { last, calls };
}

/** @throws ApiError when the run failed: a failed run is an HTTP error, never 200 with an empty answer */
export function doneEvent(last: TerminalEvent | undefined): DoneEvent {
  if (last === undefined) throw new ApiError("run_expired", "This run was ended without an answer.");
  if (last.type === "error") throw failureOf(last);
  return last;
}

/** @throws ApiError when the run failed */
export function chatResponse({ last, calls }: CollectedRun): ChatResponse {
  const { data, state, usage, finish_reason, approvals, suggestions, title, sources, model } = doneEvent(last);
  return {
    response: data,
    state,
    done: true,
    finish_reason,
    ...(usage === undefined ? {} : { usage }),
    ...(calls.size === 0 ? {} : { tool_calls: [...calls.values()] }),
    ...(approvals === undefined ? {} : { approvals }),
    ...(suggestions === undefined ? {} : { suggestions }),
    ...(title === undefined ? {} : { title }),
    ...(sources === undefined ? {} : { sources }),
    ...(model === undefined ? {} : { model }),
  };
}

type ToolCalls = Map<string, NonNullable<ChatResponse["tool_calls"]>[number]>;

/** The failure of a run, as an error like those that are thrown before a run begins. */
export function failureOf({ code, data, retry_after: retryAfter, state, ...last }: ErrorEvent): ApiError {
  const { retryable, param, problems } = last;
  const beside = state === undefined ? {} : { state, ...(last.continue ? { continue: true as const } : {}) };
  return new ApiError(code, data, { retryable, retryAfter, beside, param, problems });
}

/** `GET /api/chat/runs/{id}`, to resume after a lost connection: sends the events after `Last-Event-ID`. */
export const resumeRun =
  (service: Service) =>
  async (context: RequestContext, caller: Caller): Promise<void> => {
    const { req, res, params, method } = context;
    const visitor = await admitted(service, context, caller);
    const run = await service.runs.find(visitor, params.id ?? "");
    const reader = await run.read(lastEventId(req));
    if (method === "HEAD") {
      reader.close();
      res.setHeader("x-run-id", run.id);
      res.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" }).end();
    } else if (reader.isAtEnd) {
      reader.close();
      // This status keeps an EventSource from reconnecting (WHATWG HTML, 9.2.2).
      res.writeHead(204, { "cache-control": "no-store" }).end();
    } else {
      await streamRun(service, context, { run, reader });
    }
  };

/** @throws ApiError `invalid_request` */
function lastEventId({ headers }: IncomingMessage): number {
  const value = headers["last-event-id"];
  if (value === undefined || value === "") return 0;
  if (typeof value === "string" && /^\d{1,15}$/.test(value)) return Number(value);
  throw invalidRequest("", "Last-Event-ID must be the id of an event, or 0.");
}

/** `POST /api/chat/runs/{id}/cancel`: ends the run with `done`, `finish_reason: "stopped"`. */
export const cancelRun =
  (service: Service) =>
  async (context: RequestContext, caller: Caller): Promise<void> => {
    const visitor = await admitted(service, context, caller);
    const isCancelled = await service.runs.cancel(visitor, context.params.id ?? "");
    const body: CancelResponse = { status: isCancelled ? "cancelled" : "finished" };
    sendJson(context.res, 200, body);
  };

function admitted(service: Service, context: RequestContext, caller: Caller): Promise<Caller> {
  return service.runtime.use((served) => admitReader(service, served, caller, () => visitOf(context)));
}
