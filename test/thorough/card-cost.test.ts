/** Cost of hostile arguments in the approval card: doubling a text at most about doubles the time, for each part. */

import "../support/dom.ts";
import assert from "node:assert/strict";
import type { TemplateResult } from "lit";
import type { ToolBlock } from "../../widget/conversations/messages.ts";
import { en } from "../../widget/i18n/strings.ts";
import { ApprovalElement } from "../../widget/ui/approval.ts";
import { ArgumentFields } from "../../widget/ui/argument-fields.ts";
import type { ChatActions, ChatContext } from "../../widget/ui/context.ts";
import { PlainQuestion } from "../../widget/ui/plain-question.ts";
import { it } from "../support/rows.ts";

// Names of their own: another file of this process may have defined the usual ones.
class Card extends ApprovalElement {}
class Question extends PlainQuestion {}
class Fields extends ArgumentFields {}
customElements.define("x-card", Card);
customElements.define("x-question", Question);
customElements.define("x-fields", Fields);

const LENGTH = 100_000;

const repeat = (unit: string, length: number) => unit.repeat(Math.ceil(length / unit.length));

/** Parts that texts repeat. */
const UNITS = [
  ["a", "ab", "a ", "aA", "AA", "a_", "_", "1", "0", "[", '"', "\\", '\\"', "\\u200b"],
  [" ", "\t", "\n", "\r", "\n \n", "\n\n\n\na", " \n\t\n", "\u2800", `${" ".repeat(40)}a`, `${" ".repeat(41)}a`],
  ["\u0301", "a\u0301\u0302\u0303\u0304\u0305", "\u{1f468}\u200d", "\u{1f1e9}", "1\ufe0f", "\u0646\u200c", "\ud800"],
  ["\u202e", "\u2066a\u2069", "\u200b", "a\u200b", "\u200d", "\u00ad", "\u{e0041}"],
  [`${"a".repeat(98)}b`, `${"ab".repeat(98)}c`, `${"a".repeat(100)}${"b".repeat(100)}`],
].flat();

const numbered = (length: number, one: (index: number) => string, size: number) =>
  Array.from({ length: length / size }, (_, index) => one(index)).join();

/** JSON of about this length, by kind of content. */
const SHAPES: Readonly<Record<string, (length: number) => string>> = {
  "a number with zeros": (length) => `{"a":1${repeat("0", length)}1}`,
  "a number of digits": (length) => `{"a":${repeat("12", length)}}`,
  "a fraction": (length) => `{"a":0.${repeat("0", length)}1}`,
  "an array of numbers": (length) => `{"a":[${numbered(length, () => "1000", 5)}]}`,
  "an array of texts": (length) => `{"a":[${numbered(length, () => '"a"', 4)}]}`,
  "an array of objects": (length) => `{"a":[${numbered(length, () => '{"b":1}', 8)}]}`,
  "an array": (length) => `[${numbered(length, () => "true", 5)}]`,
  "many keys": (length) => `{${numbered(length, (index) => `"a${index}":1`, 9)}}`,
  "many flags": (length) => `{${numbered(length, (index) => `"a${index}":true`, 12)}}`,
  "many equal keys": (length) => `{${numbered(length, () => '"a":1', 6)}}`,
  "many long texts": (length) => `{${numbered(length, (index) => `"a${index}":"${"ab ".repeat(110)}"`, 340)}}`,
  "many keys below a long one": (length) =>
    `{"${repeat("a b", length / 2)}":{${numbered(length / 2, (index) => `"a${index}":1`, 9)}}}`,
  "many long keys": (length) => `{${numbered(length, (index) => `"${"ab ".repeat(110)}${index}":1`, 340)}}`,
  "60 levels": (length) => `{"a":${repeat("[", 60)}"${repeat("a ", length)}"${repeat("]", 60)}}`,
  "60 levels again and again": (length) => `{"a":[${numbered(length, () => repeat("[", 60) + repeat("]", 60), 121)}]}`,
  "60 levels of objects": (length) =>
    `{"a":[${numbered(length, () => `${repeat('{"a":', 300)}1${repeat("}", 60)}`, 362)}]}`,
  "levels without an end": (length) => `{"a":${repeat("[", length / 2)}${repeat("]", length / 2)}}`,
  "no JSON": (length) => `{"a":"${repeat('\\"', length)}`,
  "no JSON, and a backslash": (length) => `{"a":"${repeat('\\"', length)}\\`,
  blanks: (length) => `{"a":${repeat(" ", length)}1}`,
};

const asked = (text: string) => ({ approval: { text, expires_at: "", danger: true, editable: true } });

const PLACES: Readonly<Record<string, (text: string) => Partial<ToolBlock>>> = {
  "a question, and in a button": (text) => ({ ...asked(text), title: text }),
  "an argument": (text) => ({ arguments: JSON.stringify({ a: text }) }),
  "the name of an argument": (text) => ({ arguments: JSON.stringify({ [text]: 1 }) }),
  "arguments that are no JSON": (text) => ({ arguments: text }),
};

const doNothing = () => {};
const actions = new Proxy({} as ChatActions, { get: () => doNothing });
const context = { strings: en, agent: "Ada", actions } as unknown as ChatContext;

/** The templates that a component renders, without creating DOM elements and their cost. */
function templateOf(part: ApprovalElement | ArgumentFields | PlainQuestion): TemplateResult {
  return (part as unknown as { render(): TemplateResult }).render();
}

/** All values in a template and in nested ones, each with the tag that contains it. */
function* valuesIn(value: unknown, tag = ""): Generator<{ value: unknown; tag: string }> {
  yield { value, tag };
  if (Array.isArray(value)) {
    for (const it of value) yield* valuesIn(it);
    return;
  }
  const { strings, values = [] } = (value ?? {}) as Partial<TemplateResult>;
  const [items, , draw] = values;
  // The arguments of Lit's `repeat`.
  if (strings === undefined && Array.isArray(items) && typeof draw === "function") {
    for (const [index, it] of items.entries()) yield* valuesIn(draw(it, index));
    return;
  }
  let before = "";
  for (const [index, it] of values.entries()) {
    before = (before + strings?.[index]).replace(/^.*</s, "");
    yield* valuesIn(it, before);
  }
}

/** Calls the handler of an event on the first element whose tag contains `of`. */
function act(card: ApprovalElement | ArgumentFields, of: string, event: string, value?: string): void {
  for (const { value: handler, tag } of valuesIn(templateOf(card))) {
    if (typeof handler !== "function" || !tag.endsWith(`@${event}=`) || !tag.includes(of)) continue;
    handler({ detail: 1, currentTarget: { value } });
    return;
  }
}

/** Number of characters rendered for a call while a person reads all of it, changes a value and approves. */
function use(call: ToolBlock): number {
  const card = Object.assign(new Card(), { context, calls: [call], canDecide: true });
  act(card, 'part="approve"', "click");
  act(card, 'part="approve"', "click");
  const parts = [templateOf(card)];
  const fields = Object.assign(new Fields(), { context, call });
  (fields as unknown as { willUpdate(changed: Map<string, unknown>): void }).willUpdate(new Map([["call", undefined]]));
  act(fields, "", "input", `${call.arguments}x`);
  parts.push(templateOf(fields));
  act(fields, "", "input", `${"1".repeat(call.arguments.length)}x`);
  fields.read();
  parts.push(templateOf(fields));
  parts.push(templateOf(Object.assign(new Question(), { context, calls: [call], canDecide: true })));
  return [...valuesIn(parts)].reduce((sum, { value }) => sum + (typeof value === "string" ? value.length : 0), 0);
}

/** The cost of a call: processor time in milliseconds, and rendered characters. */
function costOf(asks: Partial<ToolBlock>): { ms: number; characters: number } {
  const call = {
    type: "tool",
    callId: "c",
    tool: "pay",
    arguments: "{}",
    status: "waiting",
    ...asked("Pay?"),
    ...asks,
  };
  const { user } = process.cpuUsage();
  const characters = use(call as ToolBlock);
  return { ms: process.cpuUsage({ user, system: 0 }).user / 1000, characters };
}

/** Shorter times are not compared, because garbage collection takes as long. */
const FLOOR_MS = 150;

/** Asserts that twice the text costs about twice as much. Slow runs are repeated: another process may be the cause. */
function costGrowsWithText(name: string, ask: (length: number) => Partial<ToolBlock>): void {
  for (let tries = 3; ; tries -= 1) {
    const { ms, characters } = costOf(ask(LENGTH));
    // Levels are indented, and each character that shows nothing is written as six or more.
    assert.ok(characters < 100 * LENGTH, `${name}: ${characters} characters`);
    if (ms < 3 * FLOOR_MS) return;
    const half = costOf(ask(LENGTH / 2));
    if (ms < 3 * half.ms) return;
    assert.ok(tries > 1, `${name}: ${half.ms} ms, then ${ms} ms`);
  }
}

for (const [place, ask] of Object.entries(PLACES)) {
  it(`100 kB of any text in ${place} cost about twice what 50 kB cost`, () => {
    for (const unit of UNITS) costGrowsWithText(JSON.stringify(unit), (length) => ask(repeat(unit, length)));
  });
}

it("100 kB of arguments of any shape cost about twice what 50 kB cost", () => {
  for (const [name, shape] of Object.entries(SHAPES)) {
    costGrowsWithText(name, (length) => ({ arguments: shape(length) }));
  }
});
