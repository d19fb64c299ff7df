/** What an agent within a tool does, as steps of its call. What it says is no part of the answer. */

import { randomUUID } from "node:crypto";
import type { Usage } from "../protocol/chat.ts";
import { asString, isRecord } from "../protocol/json.ts";
import type { FoundSource, ToolCall } from "../providers/provider.ts";

/** No call has this id, as one that comes without an id gets one: what is read of an agent within it is shown nowhere. */
export const NOBODY = "";

/** What readers say of an agent: the one that answers, or one within a tool of it. `Answer` says what its methods do. */
export interface AgentAnswer {
  text(delta: unknown): void;
  source(source: FoundSource): void;
  thinking(delta: unknown): void;
  beginAnew(): void;
  expect(calls: number): void;
  giveUp(except?: ReadonlySet<string>): void;
  addUsage(usage: Usage | undefined): void;
  isOpen(id: string): boolean;
  hasCalled(id: string): boolean;
  openCalls(name?: unknown): Pick<ToolCall, "id" | "name">[];
  call(id: unknown, name: unknown, args: unknown): string;
  progress(id: unknown, text: unknown): void;
  result(id: unknown, output: unknown, failed?: boolean): void;
  thrown(id: unknown, thrown: unknown): void;
  within(id: unknown): AgentAnswer;
}

/** Where its steps go. */
interface Outer extends Pick<AgentAnswer, "progress" | "result" | "thrown"> {
  step(parent: string, id: unknown, name: unknown, args: unknown): unknown;
  within(id: unknown): AgentAnswer;
}

/** Stands in the place of an `Answer` where a reader reads an agent within a call. */
export class InnerAnswer implements AgentAnswer {
  readonly #outer: Outer;
  readonly #parent: string;
  readonly #known = new Set<string>();
  readonly #open = new Map<string, Pick<ToolCall, "id" | "name">>();

  /** `parent` is the id of the call, or of the step, that the agent works in. */
  constructor(outer: Outer, parent: string) {
    this.#outer = outer;
    this.#parent = parent;
  }

  text(): void {}
  source(): void {}
  thinking(): void {}
  beginAnew(): void {}
  expect(): void {}
  giveUp(): void {}
  addUsage(): void {}

  isOpen(id: string): boolean {
    return this.#open.has(id);
  }

  hasCalled(id: string): boolean {
    return this.#known.has(id);
  }

  openCalls(name?: unknown): Pick<ToolCall, "id" | "name">[] {
    return [...this.#open.values()].filter((call) => name === undefined || call.name === name);
  }

  call(given: unknown, name: unknown, args: unknown): string {
    const id = asString(given) || randomUUID();
    if (this.#known.has(id)) return id;
    this.#known.add(id);
    this.#open.set(id, { id, name: asString(name) });
    this.#outer.step(this.#parent, this.stepOf(id), name, args);
    return id;
  }

  progress(id: unknown, text: unknown): void {
    this.#outer.progress(this.stepOf(id), text);
  }

  result(id: unknown, output: unknown, failed?: boolean): void {
    if (this.#open.delete(asString(id))) this.#outer.result(this.stepOf(id), output, failed);
  }

  thrown(id: unknown, thrown: unknown): void {
    if (this.#open.delete(asString(id))) this.#outer.thrown(this.stepOf(id), thrown);
  }

  within(id: unknown): AgentAnswer {
    return this.#outer.within(this.stepOf(id));
  }

  /** Ids of agents within may be those of the agent around them, so that of a step names its call, too. */
  stepOf(id: unknown): string {
    return `${this.#parent}.${asString(id)}`;
  }
}

/**
 * What a tool says that it does, of an object that its framework hands out. A text alone, or as `text` without a `status`, may be
 * what an agent within the tool says.
 */
export function statusOf(said: unknown): unknown {
  const { text, message, progress, status } = isRecord(said) ? said : {};
  const beside = typeof status === "string" ? text : undefined;
  return [beside, message, progress, status].find((one) => typeof one === "string");
}
