/** Calls within the running calls of an agent, which its model never gets to know. */

import { AgentNotice } from "../errors.ts";
import type { ModelEvent, ToolCall } from "../providers/provider.ts";

/** How many steps of one call are shown, including steps of its steps. */
const MAX_STEPS = 200;

/** How deep steps may be nested within a call. */
const MAX_LEVELS = 3;

interface Step {
  readonly call: ToolCall;
  /** Id of the call or the step that this is a step of. */
  readonly parent: string;
  /** Id of the outermost call. */
  readonly root: string;
  readonly level: number;
  readonly startedAt: number;
}

/** The steps of one answer. */
export class Steps {
  readonly #open = new Map<string, Step>();
  /** Ids of all steps. */
  readonly #known = new Set<string>();
  readonly #counts = new Map<string, number>();
  /** Called with what the operator should know. */
  readonly #onNotice: (notice: AgentNotice) => void;

  constructor(onNotice: (notice: AgentNotice) => void) {
    this.#onNotice = onNotice;
  }

  /** Whether a step of this id has begun. */
  has(id: string): boolean {
    return this.#known.has(id);
  }

  /** Id of the call that a running step belongs to. */
  rootOf(id: string): string | undefined {
    return this.#open.get(id)?.root;
  }

  callOf(id: string): ToolCall | undefined {
    return this.#open.get(id)?.call;
  }

  /** Begins a step within the call `within`, or within a step of it. Returns no event if the limits are exceeded. */
  begin(call: ToolCall, parent: string, within: ToolCall): ModelEvent[] {
    const { id: root, name } = within;
    const { level = 0 } = this.#open.get(parent) ?? {};
    const count = this.#counts.get(root) ?? 0;
    if (count >= MAX_STEPS || level >= MAX_LEVELS) {
      const most = `more than ${MAX_STEPS} steps, or steps deeper than ${MAX_LEVELS} levels`;
      this.#onNotice(new AgentNotice(`The tool "${name}" made ${most}. The others are not shown.`));
      return [];
    }
    this.#counts.set(root, count + 1);
    this.#known.add(call.id);
    this.#open.set(call.id, { call, parent, root, level: level + 1, startedAt: performance.now() });
    return [{ type: "hosted_call", call, parent }];
  }

  /** Ends a step, and returns it if it was running. */
  end(id: string): Pick<Step, "call" | "parent" | "startedAt"> | undefined {
    const step = this.#open.get(id);
    this.#open.delete(id);
    return step;
  }

  /** Ends all steps that run within a call or a step, and returns their ids. */
  endWithin(parent: string): string[] {
    const ids = [...this.#open].flatMap(([id, step]) => (step.parent === parent ? [id] : []));
    for (const id of ids) this.#open.delete(id);
    return ids.flatMap((id) => [id, ...this.endWithin(id)]);
  }
}
