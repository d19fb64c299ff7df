/** Parley's own events, and strings: what an agent's author writes by hand. */

import { AgentNotice } from "../errors.ts";
import { asString, isRecord } from "../protocol/json.ts";
import type { FoundSource } from "../providers/provider.ts";
import { usageOf } from "../providers/usage.ts";
import { failure } from "./answer.ts";
import { type Handlers, readByType, type Shape } from "./shape.ts";

const NO_PARENT =
  "The agent's run yielded a tool_call whose parent is no call that runs: it is not shown. Yield steps behind their call, and before its result.";

const NO_CALL =
  "The agent's run yielded a tool_result whose id is that of no call: it is not shown. Yield a tool_call of this id before it.";

const HANDLERS: Handlers = {
  token: ({ data }, answer) => answer.text(textOf("token.data", data)),
  thinking: ({ data }, answer) => answer.thinking(textOf("thinking.data", data)),
  tool_call({ data }, answer) {
    const { id: given, tool: name, arguments: args, parent } = fieldsOf("tool_call", data);
    const [id, tool] = [textOf("tool_call.data.id", given), textOf("tool_call.data.tool", name)];
    if (parent !== undefined) {
      if (!answer.step(textOf("tool_call.data.parent", parent), id, tool, args))
        answer.notice(new AgentNotice(NO_PARENT));
      return;
    }
    answer.call(id, tool, args, args !== undefined);
    // Not held back: the author knows whether the call waits for the user.
    answer.release();
  },
  tool_progress({ data }, answer) {
    const { id, text } = fieldsOf("tool_progress", data);
    answer.progress(textOf("tool_progress.data.id", id), textOf("tool_progress.data.text", text));
  },
  tool_result({ data }, answer) {
    const { id, output, status, images, ...others } = fieldsOf("tool_result", data);
    const [other] = Object.keys(others);
    if (!answer.hasCalled(asString(id))) answer.notice(new AgentNotice(NO_CALL));
    else if (output === undefined && other !== undefined) {
      const sentence = `The agent's run yielded a tool_result without output, but with ${other}, which does nothing.`;
      answer.notice(new AgentNotice(sentence));
    }
    answer.result(id, output ?? "", status === "failed", images);
  },
  source({ data }, answer) {
    const { title, url, file, quote, at } = fieldsOf("source", data);
    const named =
      url === undefined ? { file: textOf("source.data.file", file) } : { url: textOf("source.data.url", url) };
    answer.source({ title: asString(title), ...named, quote: asString(quote), at });
  },
  usage({ data }, answer) {
    const { input_tokens: input, output_tokens: output, ...more } = fieldsOf("usage", data);
    const { cached_input_tokens: cached, cache_write_tokens: written, reasoning_tokens: reasoning } = more;
    const usage = usageOf({ input, output, cached, written, reasoning });
    if (usage === undefined) {
      throw failure("The agent's run yielded a usage whose data has no input_tokens and output_tokens.");
    }
    answer.addUsage(usage);
  },
  suggestions: ({ data }, answer) => answer.suggest(data),
  state: ({ data }, answer) => answer.keep(data),
  tool_approval({ data }, answer) {
    const { id, tool, arguments: args, text, danger, editable, question, kept } = fieldsOf("tool_approval", data);
    answer.askApproval({
      ...{ id: textOf("tool_approval.data.id", id), tool: textOf("tool_approval.data.tool", tool) },
      ...{ arguments: args, text, kept, danger: danger === true, editable: editable === true },
      ...{ question: question === true, isQuestion: question === true },
    });
  },
  // The rest are internal events, which `remote.ts` yields for agents behind HTTP.
  changing_state({ data }, answer) {
    if (typeof data === "function") answer.changingState = data as () => unknown;
  },
  found_source: ({ data }, answer) => answer.source(data as FoundSource),
  finish_reason: ({ data }, answer) => answer.finishedAs(data),
  notice({ data }, answer) {
    if (data instanceof AgentNotice) answer.notice(data);
  },
};

export const OWN_EVENTS: Shape = {
  name: "Parley's events",
  fits: (item) => typeof item === "string" || (isRecord(item) && Object.hasOwn(HANDLERS, asString(item.type))),
  reader: () => ({
    read(item, answer) {
      if (typeof item !== "string") return readByType(HANDLERS, item, answer);
      answer.text(item);
      return true;
    },
  }),
};

/** The event that the author meant by an unknown one with `data`, such as `tool-call`; no framework streams those. */
export function meantEvent(item: unknown): string | undefined {
  if (!isRecord(item) || !("data" in item) || typeof item.type !== "string") return undefined;
  if (Object.hasOwn(HANDLERS, item.type)) return undefined;
  const ours = item.type.replace(/-|(?=[A-Z])/g, "_").toLowerCase();
  if (Object.hasOwn(HANDLERS, ours)) return ours;
  return typeof item.data === "string" && ["text", "delta", "content", "message"].includes(ours) ? "token" : undefined;
}

/** Throws, because a wrong event is a mistake that its author should correct. @throws ApiError */
function textOf(name: string, value: unknown): string {
  if (typeof value === "string") return value;
  throw failure(`The agent's run yielded an event whose ${name} is not a string.`);
}

function fieldsOf(name: string, data: unknown): Record<string, unknown> {
  if (isRecord(data)) return data;
  throw failure(`The agent's run yielded a ${name} whose data is not an object.`);
}
