/** Agents behind HTTP, in any language: what a project imports as `agUi` and `responses`. */

import { isAgentObject, type OwnRun, type RunFunction } from "../agent/run-function.ts";
import { ConfigError } from "../errors.ts";
import { UpstreamTruncation } from "../providers/failures.ts";

export interface RemoteOptions {
  /** Sent with each request, such as `authorization`. */
  headers?: Record<string, string>;
}

const ADDRESS = Symbol("address");

/** Describes what answers in place of a model, for the operator. */
export function describeRun({ run }: OwnRun): string {
  if (isAgentObject(run)) return "an agent of the AI SDK answers";
  return (run as { [ADDRESS]?: string })[ADDRESS] ?? "the agent's run answers";
}

/** Describes where the agent is, without the parts of its address that may be secret. */
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
    const { ResponseEvents, responsesInput } = await import("./responses.ts");
    const body = { input: responsesInput(input), stream: true };
    const events = new ResponseEvents();
    for await (const event of await posted(url, body, headers, input.signal)) {
      // Comments and events without content count as activity for the time limits, as they do for a model.
      yield "";
      if (event === undefined) continue;
      yield* events.read(event);
      if (events.isOver) return;
    }
    if (!events.isComplete) throw new UpstreamTruncation("its stream ended without response.completed or [DONE]");
  });
}

/** Loads the HTTP client on first use: most agents need none. */
async function posted(...request: Parameters<typeof import("./upstream.ts").postForEvents>) {
  const { postForEvents } = await import("./upstream.ts");
  return postForEvents(...request);
}

/** @throws ConfigError */
function checkUrl(name: string, url: unknown): void {
  if (typeof url === "string" && /^https?:\/\//.test(url) && URL.canParse(url)) return;
  throw new ConfigError(`${name} needs the agent's address, such as ${name}("http://127.0.0.1:8000/").`);
}
