/** Fields for editing a call's arguments: their types, and the values read from them. */

import "../support/dom.ts";
import assert from "node:assert/strict";
import type { ToolBlock } from "../../widget/conversations/messages.ts";
import { en } from "../../widget/i18n/strings.ts";
import { ArgumentFields } from "../../widget/ui/argument-fields.ts";
import { definePart } from "../../widget/ui/chat-part.ts";
import type { ChatContext } from "../../widget/ui/context.ts";
import { test } from "../support/rows.ts";

// A name of its own: another file of this process may have defined the usual one.
class Fields extends ArgumentFields {}
definePart("x-argument-fields", Fields);

const context = { strings: en, actions: { holdScroll() {} } } as unknown as ChatContext;

/** Fields for one argument `a`; `more` extends its schema, `sent` the call. */
async function fieldsFor(
  a: unknown,
  schema: object | undefined,
  more: object = {},
  sent: object = {},
): Promise<Fields> {
  const args = a === undefined ? {} : { a };
  const of = schema && { type: "object", required: ["a"], properties: { a: schema }, ...more };
  const approval = { text: "Pay?", expires_at: "", editable: true, ...(of && { schema: of }) };
  const call = {
    type: "tool",
    callId: "c",
    tool: "pay",
    arguments: JSON.stringify(args),
    status: "waiting",
    approval,
    ...sent,
  };
  const fields = Object.assign(new Fields(), { context, call: call as ToolBlock });
  document.body.append(fields);
  await fields.updateComplete;
  return fields;
}

const controlIn = (fields: Fields) => fields.querySelector<HTMLInputElement>("input, select, textarea");

/** The first control's tag and type. */
function kindOf(fields: Fields): string {
  const control = controlIn(fields);
  return control ? `${control.localName}${control.localName === "input" ? ` ${control.type}` : ""}` : "none";
}

async function type(fields: Fields, value: string | boolean): Promise<void> {
  const control = controlIn(fields);
  assert.ok(control);
  if (typeof value === "boolean") control.checked = value;
  else control.value = value;
  for (const name of ["input", "change"]) control.dispatchEvent(new Event(name, { bubbles: true }));
  await fields.updateComplete;
}

const CHECK = "Please check this value.";

/** A value, its schema, the control, the input, and the result: the new value, or the error message. */
const ROWS: [value: unknown, schema: object | undefined, control: string, typed: string | boolean, outcome: unknown][] =
  [
    ["x", { type: "string" }, "input text", "y", { a: "y" }],
    ["x", { type: "string" }, "input text", "", { a: "" }],
    ["x", { type: "string", minLength: 2 }, "input text", "", "At least 2 characters."],
    ["x", { type: "string", maxLength: 1 }, "input text", "👍", { a: "👍" }],
    ["x", { type: "string", maxLength: 1 }, "input text", "ab", "At most 1 character."],
    ["a long text, of which a phone would hide the end", undefined, "textarea", "y", { a: "y" }],
    ["2026-12-01", { type: "string", format: "date" }, "input date", "2026-12-24", { a: "2026-12-24" }],
    ["tomorrow", { type: "string", format: "date" }, "input text", "today", { a: "today" }],
    [1, undefined, "input text", "2,5", { a: 2.5 }],
    [1, { type: "integer" }, "input text", "2.5", CHECK],
    [1, { type: "number", minimum: 1, maximum: 2 }, "input text", "0", "At least 1."],
    [1, { type: "number", minimum: 1, maximum: 2000 }, "input text", "2001", "At most 2,000."],
    [1, { type: "number" }, "input text", "", CHECK],
    [1, { type: ["number", "null"] }, "input text", "", { a: null }],
    [1, { anyOf: [{ type: "number", maximum: 2 }, { type: "null" }] }, "input text", "3", "At most 2."],
    [null, { type: ["string", "null"] }, "input text", "x", { a: "x" }],
    [1, { $ref: "#/$defs/sum" }, "input text", "3", "At most 2."],
    ["a", { enum: ["a", "b"] }, "select", '"b"', { a: "b" }],
    [1, { oneOf: [{ const: 1, title: "One" }, { const: 2 }] }, "select", "2", { a: 2 }],
    [null, { type: ["boolean", "null"] }, "select", "true", { a: true }],
    [true, { type: "boolean" }, "input checkbox", false, { a: false }],
    [["x"], { type: "array", items: { type: "string" } }, "textarea", "x\n\n y ", { a: ["x", " y "] }],
    [[1, 2], undefined, "textarea", "3\n4,5", { a: [3, 4.5] }],
    [[1], { type: "array", items: { type: "integer" } }, "textarea", "1.5", CHECK],
    [[], { type: "array", items: { type: "string" }, maxItems: 1 }, "textarea", "x\ny", "At most 1."],
    [["x"], { type: "array", items: { enum: ["x", "y"] } }, "textarea", "z", CHECK],
    [["x"], { type: "array", minItems: 1 }, "textarea", "", "At least 1."],
    [["x\ny"], undefined, "textarea", '["z"]', { a: ["z"] }],
    [{ b: [{ c: "x" }] }, undefined, "input text", "y", { a: { b: [{ c: "y" }] } }],
    [{ b: { c: { d: { e: 1 } } } }, undefined, "textarea", '{"e":2}', { a: { b: { c: { d: { e: 2 } } } } }],
    [Array.from({ length: 41 }, () => ({ b: 1 })), undefined, "textarea", "[]", { a: [] }],
    [{}, undefined, "textarea", "{", CHECK],
    [{ b: 1 }, { properties: { b: { maximum: 1 } } }, "input text", "2", "At most 1."],
  ];

for (const [value, schema, control, typed, outcome] of ROWS) {
  const name = [value, schema ?? "no schema", typed].map((it) => JSON.stringify(it).slice(0, 90)).join(", ");
  test(`a field for ${name}`, async () => {
    const fields = await fieldsFor(value, schema, { $defs: { sum: { type: "number", maximum: 2 } } });
    assert.equal(kindOf(fields), control);
    assert.deepEqual(fields.read(), {}, "nothing was changed");
    await type(fields, typed);
    const read = fields.read();
    await fields.updateComplete;
    const said = fields.querySelector(".wrong")?.textContent?.trim();
    assert.deepEqual(read?.arguments === undefined ? said : JSON.parse(read.arguments), outcome);
    fields.remove();
  });
}

test("problems stand at their fields, or at those around them, whatever the server sends", async () => {
  const problems = [7, { pointer: "/a/b/0", message: "One." }, { pointer: "/a/c" }, { pointer: "/x", message: "Two." }];
  const refused = '{"a":{"b":["y"],"c":{"d":2}}}';
  const fields = await fieldsFor({ b: ["x"], c: { d: 1 } }, undefined, {}, { refused, problems });
  const said = [...fields.querySelectorAll(".wrong")].map((it) =>
    it.textContent?.replace(/[\u2068\u2069]/g, "").trim(),
  );
  assert.deepEqual(said, [`${CHECK} Two.`, `${CHECK} One.`, CHECK]);
  assert.equal(controlIn(fields)?.value, "y", "as it was typed");
  const unsaid = await fieldsFor(1, undefined, {}, { refused: '{"a":2}' });
  assert.match(unsaid.querySelector(".wrong")?.textContent ?? "", /^Please check this value\./);
});

test("what a call leaves out has a field if it is one value, and stays out until something is typed", async () => {
  const inner = { type: "object", properties: { c: { type: "string" } } };
  const fields = await fieldsFor(undefined, { type: "string" }, { required: [] });
  assert.deepEqual([kindOf(fields), fields.read()], ["input text", {}]);
  await type(fields, "x");
  assert.deepEqual(fields.read(), { arguments: '{"a":"x"}' });
  await type(fields, "");
  assert.deepEqual(fields.read(), {});
  assert.equal(kindOf(await fieldsFor(undefined, inner, { required: [] })), "none");
});

test("a value that may be left out is left out when its field is emptied", async () => {
  const fields = await fieldsFor(1, { type: "number" }, { required: [] });
  await type(fields, "");
  assert.deepEqual(fields.read(), { arguments: "{}" });
});

test("a list of objects takes another element, up to as many as it may have, and the first of its fields gets the focus", async () => {
  const item = {
    type: "object",
    required: ["sku"],
    properties: { sku: { type: "string" }, count: { type: "integer" } },
  };
  const fields = await fieldsFor([{ sku: "x", count: 1 }], { type: "array", maxItems: 2, items: item });
  const button = () => fields.querySelector<HTMLButtonElement>('[part~="add-element"]');
  assert.equal(button()?.getAttribute("aria-label"), "Add to A");
  button()?.click();
  await fields.updateComplete;
  await fields.updateComplete;
  const controls = [...fields.querySelectorAll("input")];
  assert.equal(controls.length, 4);
  assert.equal(document.activeElement, controls[2]);
  assert.equal(button()?.disabled, true);
  assert.equal(fields.read(), undefined, "its sku is required");
  Object.assign(controls[2] as object, { value: "y" });
  controls[2]?.dispatchEvent(new Event("input", { bubbles: true }));
  assert.deepEqual(fields.read(), { arguments: '{"a":[{"sku":"x","count":1},{"sku":"y"}]}' });
});
