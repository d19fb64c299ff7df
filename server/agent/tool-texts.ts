/** Texts for people about calls of tools that run elsewhere, in an agent that is written elsewhere. */

import type { RunEvent } from "../observe/run-observer.ts";
import type { ToolCallEvent, ToolResultEvent } from "../protocol/events.ts";
import { tryParse } from "../protocol/json.ts";
import type { AskedCall, ToolCall } from "../providers/provider.ts";
import { askedCall } from "./approvals.ts";
import { SEPARATOR } from "./exchange.ts";
import { hiddenBy, hiderOf, madeTitle } from "./tool-words.ts";
import { type Calling, callEvents } from "./tools.ts";

/** Puts the author's texts into the events of one answer. */
export class ToolTexts {
  readonly #calling: Calling;
  readonly #calls = new Map<string, ToolCall>();
  /** Ids of calls whose steps and progress clients may not read. */
  readonly #hiding = new Set<string>();
  readonly #isWithheld: boolean;
  #hasSpoken = false;
  /** Whether the last event, apart from thinking and sources, was one that clients do not get. */
  #isHidden = false;

  /** `isWithheld`: clients get the answer's texts only when it is over. */
  constructor(calling: Calling, isWithheld: boolean) {
    this.#calling = calling;
    this.#isWithheld = isWithheld;
  }

  /** The same events, with the author's texts for the calls in them. */
  async apply(events: RunEvent[]): Promise<RunEvent[]> {
    const all: RunEvent[] = [];
    for (const event of await this.#worded(events)) {
      const isText = event.type === "token";
      // If clients see nothing of the calls, a separator keeps the texts before and after them apart.
      if (isText && this.#isHidden && this.#hasSpoken && !this.#isWithheld)
        all.push({ type: "token", data: SEPARATOR });
      if (event.type !== "thinking" && event.type !== "mark")
        this.#isHidden = event.type === "hidden" && event.shown === undefined;
      this.#hasSpoken ||= isText;
      all.push(event);
    }
    return all;
  }

  async #worded(events: RunEvent[]): Promise<RunEvent[]> {
    const all: RunEvent[] = [];
    for (const event of events) {
      if (event.type === "tool_call") all.push(await this.#call(event));
      else if (event.type === "tool_result") all.push(await this.#result(event));
      else if (event.type !== "tool_progress" || !this.#hiding.has(event.data.id)) all.push(event);
    }
    return all;
  }

  async #call(event: ToolCallEvent): Promise<RunEvent> {
    const { id, tool: name, arguments: args, parent } = event.data;
    const call = { id, name, arguments: args };
    this.#calls.set(id, call);
    const isWithin = parent !== undefined && this.#hiding.has(parent);
    if (isWithin || hiderOf(this.#calling.tools, name) !== undefined) this.#hiding.add(id);
    if (isWithin) return hidden(event);
    const [worded = event] = await callEvents([{ ...call, parent }], this.#calling);
    return worded;
  }

  async #result(event: ToolResultEvent): Promise<RunEvent> {
    const { id, tool: name, output, status, parent } = event.data;
    if (parent !== undefined && this.#hiding.has(parent)) return hidden(event);
    const tool = this.#calling.tools.get(name);
    const args = tryParse(this.#calls.get(id)?.arguments ?? "{}");
    const done = () => tool?.done?.(args, tryParse(output) ?? output);
    const title = tool && status === "completed" ? await madeTitle(tool, "done", done, this.#calling) : tool?.title;
    const data = title === undefined ? event.data : { ...event.data, title };
    return hiddenBy({ ...event, data }, hiderOf(this.#calling.tools, name));
  }

  /** What a person is asked: the author's words or, if there are none, those of the framework. */
  asked(asked: readonly AskedCall[]): Promise<AskedCall[]> {
    const { tools } = this.#calling;
    const all = asked.map(async (one): Promise<AskedCall> => {
      const tool = tools.get(one.call.name);
      const hider = hiderOf(tools, one.call.name);
      if (tool === undefined && hider === undefined) return one;
      const own = await askedCall(one.call, this.#calling);
      const isOwn = tool?.approval?.text !== undefined || !one.text;
      return {
        ...one,
        // The decision comes back with the call's own id.
        ...(own.shown === undefined ? {} : { shown: { ...own.shown, id: one.call.id } }),
        text: isOwn ? own.text : one.text,
        danger: own.danger || one.danger,
        editable: one.editable && hider === undefined,
      };
    });
    return Promise.all(all);
  }
}

/** The event of a step of a hidden call: clients do not get it. */
function hidden(event: ToolCallEvent | ToolResultEvent): RunEvent {
  return { type: "hidden", event, shown: undefined };
}
