/** Our own events, and strings: what an author writes by hand. */

import { isRecord } from "../protocol/json.ts";
import { failure } from "./answer.ts";
import { type Handlers, readByType, type Shape } from "./shape.ts";

const HANDLERS: Handlers = {
  token: ({ data }, answer) => answer.text(textOf("token", data)),
  thinking: ({ data }, answer) => answer.thinking(textOf("thinking", data)),
  tool_call({ data }, answer) {
    const { id, tool, arguments: args } = fieldsOf("tool_call", data);
    answer.call(textOf("tool_call.id", id), textOf("tool_call.tool", tool), args);
  },
  tool_result({ data }, answer) {
    const { id, output = "", status } = fieldsOf("tool_result", data);
    if (status === "failed") answer.failedResult(id, output);
    else answer.result(id, output);
  },
  usage({ data }, answer) {
    const { input_tokens: input, output_tokens: output } = fieldsOf("usage", data);
    answer.addUsage(input, output);
  },
  state: ({ data }, answer) => answer.keep(data),
  // As agents behind the Responses API say it.
  finish_reason: ({ data }, answer) => answer.finishedAs(data),
  tool_approval({ data }, answer) {
    answer.askApproval(String(fieldsOf("tool_approval", data).tool));
  },
};

export const OWN_EVENTS: Shape = {
  name: "Parley's events",
  fits: (item) => typeof item === "string" || (isRecord(item) && Object.hasOwn(HANDLERS, String(item.type))),
  reader: () => ({
    read(item, answer) {
      if (typeof item !== "string") return readByType(HANDLERS, item, answer);
      answer.text(item);
      return true;
    },
  }),
};

/** The author wrote the event, so a wrong one is a mistake to mend. @throws ApiError */
function textOf(name: string, value: unknown): string {
  if (typeof value === "string") return value;
  throw failure(`The agent's run yielded a ${name} that is no string.`);
}

function fieldsOf(name: string, data: unknown): Record<string, unknown> {
  if (isRecord(data)) return data;
  throw failure(`The agent's run yielded a ${name} whose data is no object.`);
}
