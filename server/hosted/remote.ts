/** Agents behind HTTP, in any language: what a project imports as `agUi` and `responses`. */

import {
  base64Of,
  isAgentObject,
  messagesUntilAsked,
  type OwnRun,
  type RunAttachment,
  type RunFunction,
  type RunInput,
  textParts,
} from "../agent/run-function.ts";
import { ConfigError } from "../errors.ts";
import { UpstreamTruncation } from "../providers/failures.ts";
import { callsOf, partsOf, textOf } from "../providers/history.ts";
import { ResponseEvents } from "./response-events.ts";

export interface RemoteOptions {
  /** Sent with each request, such as `authorization`. */
  headers?: Record<string, string>;
}

const ADDRESS = Symbol("address");

/** What answers in a model's place, in words for the operator. */
export function describeRun({ run }: OwnRun): string {
  if (isAgentObject(run)) return "an agent of the AI SDK answers";
  return (run as { [ADDRESS]?: string })[ADDRESS] ?? "the agent's run answers";
}

/** Says where the agent is, without what may be secret in its address. */
function at(url: string, protocol: string, run: RunFunction): RunFunction {
  const { origin, pathname } = new URL(url);
  return Object.assign(run, { [ADDRESS]: `the agent at ${origin}${pathname} answers, by ${protocol}` });
}

/** The `run` of an agent that speaks AG-UI at this address. */
export function agUi(url: string, { headers = {} }: RemoteOptions = {}): RunFunction {
  checkUrl("agUi", url);
  return at(url, "AG-UI", async function* (input) {
    const { AgUiThread } = await import("./ag-ui-thread.ts");
    const thread = new AgUiThread(input);
    for (const request of thread.requests()) {
      let isOver = false;
      for await (const event of await posted(url, request, headers, input.signal)) {
        yield { type: "changing_state", data: thread.kept };
        if (event === undefined) continue;
        yield* thread.read(event);
        isOver = event.type === "RUN_FINISHED" || event.type === "RUN_ERROR";
        if (isOver) break;
      }
      if (!isOver) throw new UpstreamTruncation("its stream ended without RUN_FINISHED");
    }
  });
}

/** The `run` of an agent that is served with the Responses API at this address. It gets the whole conversation each time. */
export function responses(url: string, { headers = {} }: RemoteOptions = {}): RunFunction {
  checkUrl("responses", url);
  return at(url, "the Responses API", async function* (input) {
    const body = { input: responsesInput(input), stream: true };
    const events = new ResponseEvents();
    for await (const event of await posted(url, body, headers, input.signal)) {
      // Comments and events that say nothing count for the limits, as they do of a model.
      yield "";
      if (event === undefined) continue;
      yield* events.read(event);
      if (events.isOver) return;
    }
    if (!events.isComplete) throw new UpstreamTruncation("its stream ended without response.completed or [DONE]");
  });
}

function responsesInput(input: RunInput): object[] {
  const { message, messages, attachments, ctx } = input;
  const decided = ctx.approvals.flatMap(({ id, approved, reason, kept }) => [
    kept,
    { type: "mcp_approval_response", approval_request_id: id, approve: approved, reason },
  ]);
  const content = [...textParts(message, "input_text"), ...attachments.map(responsesPart)];
  const withFiles = attachments.length === 0 ? [] : [{ role: "user", content }];
  if (decided.length > 0) return [...messagesUntilAsked(input), ...itemsSince(input), ...decided, ...withFiles];
  return withFiles.length === 0 ? messages : [...messages.slice(0, -1), ...withFiles];
}

/** What followed the message that is still being answered, without the calls that have waited. */
function itemsSince({ exchange, ctx }: RunInput): object[] {
  const asked = new Set(ctx.approvals.map(({ id }) => id));
  return exchange.slice(1).flatMap((one): object[] => {
    if (one.role === "tool") {
      const { tool_call_id: callId } = one;
      return asked.has(callId) ? [] : [{ type: "function_call_output", call_id: callId, output: textOf(partsOf(one)) }];
    }
    const text = one.role === "assistant" && one.content ? [{ role: "assistant", content: one.content }] : [];
    const calls = callsOf([one]).filter(({ id }) => !asked.has(id));
    return [...text, ...calls.map(({ id, function: called }) => ({ type: "function_call", call_id: id, ...called }))];
  });
}

/** Only where it is used: most agents are no further than an import. */
async function posted(...request: Parameters<typeof import("./upstream.ts").postForEvents>) {
  const { postForEvents } = await import("./upstream.ts");
  return postForEvents(...request);
}

/** @throws ConfigError */
function checkUrl(name: string, url: unknown): void {
  if (typeof url === "string" && /^https?:\/\//.test(url) && URL.canParse(url)) return;
  throw new ConfigError(`${name} needs the agent's address, such as ${name}("http://127.0.0.1:8000/").`);
}

function responsesPart({ type, name, mimeType, data }: RunAttachment): object {
  const url = `data:${mimeType};base64,${base64Of(data)}`;
  return type === "image"
    ? { type: "input_image", image_url: url }
    : { type: "input_file", filename: name, file_data: url };
}
