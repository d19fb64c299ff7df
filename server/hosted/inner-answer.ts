/** Shows what an agent within a tool does as steps of the tool's call. Its text is not part of the answer. */

import { randomUUID } from "node:crypto";
import type { Usage } from "../protocol/chat.ts";
import { asString, isRecord } from "../protocol/json.ts";
import type { FoundSource, ToolCall } from "../providers/provider.ts";

/** An id that no call has, since calls without an id get one: what an agent within it does is not shown. */
export const NOBODY = "";

/** What readers report of an agent: the one that answers, or one within its tools. `Answer` documents the methods. */
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

/** Receives the steps of an inner answer. */
interface Outer extends Pick<AgentAnswer, "progress" | "result" | "thrown"> {
  step(parent: string, id: unknown, name: unknown, args: unknown): unknown;
  within(id: unknown): AgentAnswer;
}

/** Takes the place of an `Answer` when a reader reads an agent within a call. */
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

  /** The id of a step contains its parent's: an inner agent may use the same ids as the agent around it. */
  stepOf(id: unknown): string {
    return `${this.#parent}.${asString(id)}`;
  }
}

/**
 * What a tool says that it is doing, from an object that its framework passes on. A plain string, or `text` without a `status`,
 * is ignored: an agent within the tool may have said it.
 */
export function statusOf(said: unknown): unknown {
  const { text, message, progress, status } = isRecord(said) ? said : {};
  const beside = typeof status === "string" ? text : undefined;
  return [beside, message, progress, status].find((one) => typeof one === "string");
}
