/** Validation of tool arguments: no schema or argument blocks the server, and mismatches are reported. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { type TestContext, test } from "node:test";
import { Worker } from "node:worker_threads";
import { z } from "zod";
import { cpuMs, fenced } from "../../server/agent/fence.ts";
import { type JsonSchema, readParameters } from "../../server/agent/tool-schema.ts";
import { AgentNotice } from "../../server/errors.ts";
import { send, TRANSPORTS } from "../support/chat-transports.ts";
import { gate, turns } from "../support/deadline.ts";
import { call, say } from "../support/scripted-provider.ts";
import { startServer } from "../support/start-server.ts";
import { stopClock } from "../support/stopped-clock.ts";
import { define } from "../support/test-tools.ts";

const MB = 1_000_000;
const many = <Item>(count: number, item: (index: number) => Item) => Array.from({ length: count }, (_, at) => item(at));
const record = (count: number) => Object.fromEntries(many(count, (index) => [`k${index}`, index]));
const nested = (depth: number, [open, close]: [string, string]) =>
  JSON.parse(open.repeat(depth) + (open === "[" ? "" : "1") + close.repeat(depth));

const NUMBERS = many(140_000, (index) => index);
const ONES = many(500_000, () => 1);
const OBJECTS = many(70_000, (index) => ({ a: index }));
const KEYS = record(80_000);
const LISTS = nested(MB / 2, ["[", "]"]);
const TREE = nested(MB / 6, ['{"a":', "}"]);
const FLAT = "a".repeat(MB);
const PAIRS = "😀".repeat(MB / 2);
const BACKTRACKS = "^(\\w+\\s?)*$";
const SENTENCE = `${"a ".repeat(MB / 2)}!`;
const SELF = { $ref: "#/properties/value/$defs/part" };
const itself = (keywords: object) => ({ ...SELF, $defs: { part: keywords } });

/** Schemas of the argument `value`, and values that are expensive to validate. */
const HOSTILE: Record<string, [schema: object, ...values: unknown[]][]> = {
  type: [[{ type: ["string", "null"] }, ONES, LISTS]],
  const: [[{ const: OBJECTS }, many(70_000, (index) => ({ a: index + 1 })), LISTS, TREE]],
  enum: [
    [{ enum: [OBJECTS, 1] }, OBJECTS, LISTS, TREE],
    [{ items: { enum: [[1], { a: -1 }] } }, OBJECTS],
  ],
  minLength: [[{ minLength: MB - 1 }, PAIRS]],
  maxLength: [
    [{ maxLength: MB / 2 }, PAIRS],
    [{ maxLength: 5, pattern: BACKTRACKS }, SENTENCE],
  ],
  pattern: [
    [{ pattern: BACKTRACKS }, SENTENCE, FLAT],
    [{ pattern: "(.*)*x" }, FLAT],
    [{ pattern: "a.*a.*b" }, FLAT],
  ],
  minimum: [[{ items: { minimum: 5 } }, ONES]],
  maximum: [[{ items: { maximum: 0 } }, ONES]],
  exclusiveMinimum: [[{ items: { exclusiveMinimum: 1 } }, ONES]],
  exclusiveMaximum: [[{ items: { exclusiveMaximum: 1 } }, ONES]],
  multipleOf: [[{ items: { multipleOf: 0.01 } }, many(140_000, () => 1.7e308), many(140_000, () => 5e-324), NUMBERS]],
  minItems: [[{ minItems: MB }, ONES]],
  maxItems: [[{ maxItems: 5, uniqueItems: true, items: { pattern: BACKTRACKS } }, NUMBERS, ["a"]]],
  uniqueItems: [[{ uniqueItems: true }, NUMBERS, OBJECTS, many(200_000, (index) => [index]), LISTS]],
  contains: [
    [{ contains: { const: -1 } }, ONES],
    [{ contains: { contains: { pattern: BACKTRACKS } } }, [[SENTENCE]]],
  ],
  minContains: [[{ contains: { type: "number" }, minContains: MB }, ONES]],
  maxContains: [[{ contains: { type: "number" }, maxContains: 1 }, ONES]],
  items: [
    [{ items: { type: "string" } }, ONES],
    [itself({ items: SELF }), LISTS],
  ],
  prefixItems: [[{ prefixItems: many(1000, () => ({ pattern: BACKTRACKS })) }, many(1000, () => "a ".repeat(500))]],
  unevaluatedItems: [[{ anyOf: [{ items: { const: 1 } }, { items: true }], unevaluatedItems: false }, ONES]],
  required: [[{ required: many(10_000, (index) => `r${index}`) }, KEYS]],
  minProperties: [[{ minProperties: MB }, KEYS]],
  maxProperties: [[{ maxProperties: 1 }, KEYS]],
  properties: [
    [{ properties: record(0), additionalProperties: false }, KEYS],
    [itself({ properties: { a: SELF } }), TREE],
  ],
  additionalProperties: [[{ additionalProperties: { type: "string" } }, KEYS]],
  patternProperties: [[{ patternProperties: { [BACKTRACKS]: false } }, { [SENTENCE]: 1 }, KEYS]],
  propertyNames: [
    [{ propertyNames: { pattern: BACKTRACKS } }, { [SENTENCE]: 1 }, KEYS],
    [{ propertyNames: false }, KEYS],
  ],
  dependentRequired: [[{ dependentRequired: { k1: many(10_000, (index) => `d${index}`) } }, KEYS]],
  dependentSchemas: [[{ dependentSchemas: { k1: { additionalProperties: false } } }, KEYS]],
  dependencies: [[{ dependencies: { k1: ["x"], k2: { propertyNames: { pattern: BACKTRACKS } } } }, KEYS]],
  unevaluatedProperties: [[{ allOf: [{ properties: { a: true } }], unevaluatedProperties: false }, KEYS]],
  allOf: [[{ allOf: many(1000, () => ({ items: { type: "number" } })) }, ONES]],
  anyOf: [
    [
      itself({
        anyOf: [
          { items: SELF, maxItems: 0 },
          { items: SELF, minItems: 2 },
        ],
      }),
      nested(60, ["[", "]"]),
    ],
  ],
  oneOf: [[itself({ oneOf: [{ items: SELF }, { items: SELF }, { const: 1 }] }), nested(60, ["[", "]"]), LISTS]],
  not: [[itself({ not: { items: SELF } }), LISTS, ONES]],
  if: [[itself({ if: { items: SELF }, else: { items: SELF }, not: { items: SELF } }), nested(60, ["[", "]"])]],
  $ref: [
    [itself({ properties: { a: SELF } }), TREE],
    [itself(SELF), 1],
  ],
};

const FORMATS =
  "date time date-time duration uri uri-reference uri-template url email hostname ipv4 ipv6 uuid regex json-pointer json-pointer-uri-fragment relative-json-pointer unknown";
const UNITS = [
  "a",
  "a.",
  "1.",
  "a-",
  "/",
  "~1",
  "%20",
  ":",
  "::1",
  "@",
  '"',
  "\\",
  "(",
  "[",
  "(?<a>",
  "{a}",
  "P1Y",
  "😀",
];

/** The most processor time between two ticks of the event loop, in milliseconds. */
async function longestTick(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let before = cpuMs();
  const measure = () => {
    longest = Math.max(longest, cpuMs() - before);
    before = cpuMs();
    next = setImmediate(measure);
  };
  let next = setImmediate(measure);
  await work();
  clearImmediate(next);
  return longest;
}

/** Validates all values concurrently. None may take longer than the limit, with a generous margin for busy machines. */
async function checkAll(schema: object, values: readonly unknown[]) {
  const { check } = readParameters({ type: "object", properties: { value: schema } }, "t");
  const checked: Awaited<ReturnType<typeof check>>[] = [];
  const longest = await longestTick(() =>
    Promise.all(values.map(async (value) => checked.push(await check({ value })))),
  );
  assert.ok(longest < 300, `${JSON.stringify(schema).slice(0, 100)} took ${longest} ms`);
  for (const result of checked) {
    if (result.ok) continue;
    assert.ok(result.problems.length > 0 && result.problems.length <= 8);
    for (const { pointer, message } of result.problems) assert.ok(pointer.length <= 501 && message.length <= 501);
  }
  return checked;
}

for (const [keyword, rows] of Object.entries(HOSTILE)) {
  test(`1 MB of the worst arguments for "${keyword}" fits or is refused, and stops nobody`, async () => {
    for (const [schema, ...values] of rows) await checkAll(schema, values);
  });
}

test("1 MB of the worst text for each format fits or is refused, and stops nobody", async () => {
  const ends = ["", "!", "]", "@a"];
  for (const format of FORMATS.split(" ")) {
    const texts = UNITS.flatMap((unit, index) => `${unit.repeat(MB / unit.length)}${ends[index % ends.length]}`);
    await checkAll({ format }, [...texts, `http://${"a".repeat(60)}!`, `http://${FLAT}`, `${FLAT}@${FLAT}`]);
  }
});

test("100 kB of ordinary arguments, and a text of 1 MB, fit", async () => {
  const properties = {
    id: { type: "integer", minimum: 0 },
    name: { type: "string", minLength: 1, maxLength: 100 },
    tags: { type: "array", items: { type: "string" }, uniqueItems: true },
    ok: { type: "boolean" },
  };
  const row = { type: "object", properties, required: ["id", "name"], additionalProperties: false };
  const rows = many(1_400, (id) => ({ id, name: `The name of number ${id}`, tags: ["red", "green"], ok: true }));
  const schema = { type: "array", items: row };
  // Warm-up: the code is slow until it has been optimized.
  await checkAll(
    schema,
    many(20, () => rows.slice(0, 200)),
  );
  // The time limit is in milliseconds of this machine, which may be slow and busy: one check of many must fit.
  const results = await checkAll(
    schema,
    many(20, () => rows),
  );
  assert.ok(results.some(({ ok }) => ok));
  for (const result of await checkAll({ type: "string", maxLength: MB }, [FLAT])) assert.equal(result.ok, true);
});

test("a check begins anew if other processes had the processor meanwhile", async () => {
  let calls = 0;
  const away = new Int32Array(new SharedArrayBuffer(4));
  const check = () => {
    if (calls++ === 0) Atomics.wait(away, 0, 0, 60);
    return calls;
  };
  assert.equal(await fenced(check, { ms: 50, retries: 1 }), 2);
});

test("what other threads of the process do meanwhile is no fault of a check", async () => {
  const busy = [0, 1].map(() => new Worker("for (;;);", { eval: true }));
  await Promise.all(busy.map((one) => once(one, "online")));
  let calls = 0;
  const away = new Int32Array(new SharedArrayBuffer(4));
  const check = () => {
    if (calls++ === 0) Atomics.wait(away, 0, 0, 400);
    return calls;
  };
  assert.equal(
    await fenced(check, { ms: 50, retries: 1 }).finally(() => Promise.all(busy.map((one) => one.terminate()))),
    2,
  );
});

test("checks of one run take at most half a second of others' time, and none once the run is over", async () => {
  const properties = { text: { type: "string", pattern: "^(a+)+$" } };
  const { check } = readParameters({ type: "object", properties }, "t");
  const run = new AbortController();
  const limits = { signal: run.signal };
  const hostile = () => check({ text: `${"a".repeat(60)}!` }, limits);
  const checked = await Promise.all(many(40, hostile));
  const said = checked.map((one) => (one.ok ? "" : String(one.failure?.message)));
  assert.equal(said.filter((text) => /kept the server busy for more than 50 ms/.test(text)).length, 10);
  assert.equal(said.filter((text) => /came after others that kept the server busy/.test(text)).length, 30);
  assert.deepEqual(await check({ text: "a" }), { ok: true, value: { text: "a" } });
  run.abort();
  assert.equal((await check({ text: "a" }, limits)).ok, false);
});

test("what does not fit is said of each part, at most eight times", async () => {
  const schema = {
    type: "object",
    properties: {
      "a/b": { type: "string", maxLength: 3, pattern: "^x" },
      list: { type: "array", items: { enum: ["c", "f"] } },
      choice: { anyOf: [{ type: "string" }, { minimum: 5 }] },
    },
    required: ["a/b", "other"],
    additionalProperties: false,
  };
  const { check } = readParameters(schema, "t");
  const problemsOf = async (value: unknown) => {
    const checked = await check(value);
    return checked.ok ? [] : checked.problems.map(({ pointer, message }) => `${pointer} ${message}`);
  };
  assert.deepEqual(await problemsOf({ "a/b": "long", list: ["c", "k"], choice: 1, more: 1 }), [
    ' Instance does not have required property "other".',
    "/a~1b String is too long (4 > 3).",
    "/a~1b String does not match pattern.",
    '/list/1 Instance does not match any of ["c","f"].',
    "/choice Instance does not match any subschemas.",
    '/choice Instance type "number" is invalid. Expected "string".',
    "/choice 1 is less than 5.",
    ' Property "more" does not match additional properties schema.',
  ]);
  const { length } = await problemsOf({ list: ONES });
  assert.ok(length > 0 && length <= 8);
});

// Validators of the agent's author.

test("arguments do not fit where the author's own check backtracks, and the log says of which tool", async () => {
  const parameters = z.object({ text: z.string().regex(/^(a+)+$/) });
  const checked = await readParameters(parameters, "t").check({ text: `${"a".repeat(60)}!` });
  assert.ok(!checked.ok);
  assert.match(checked.problems.map(({ message }) => message).join(), /took too long/);
  assert.ok(checked.failure instanceof AgentNotice);
  assert.match(checked.failure.message, /tool "t" .* kept the server busy/);
});

test("arguments do not fit where the author's own check takes longer than ten seconds", async (t: TestContext) => {
  const asked = gate();
  const forever = () => {
    asked.open();
    return new Promise<boolean>(() => {});
  };
  const { check } = readParameters(z.object({ text: z.string().refine(forever) }), "t");
  const clock = stopClock(t);
  const checking = check({ text: "a" });
  await asked.opened;
  await turns(5);
  clock.tick(10_000);
  const checked = await checking;
  assert.match(!checked.ok ? String(checked.failure?.message) : "", /tool "t" .* took longer than 10 seconds/);
});

// What clients and models get.

const SCHEMAS: [name: string, schema: JsonSchema, value: unknown][] = [
  ["300,000 wrong items", { items: { type: "string" } }, many(300_000, () => 1)],
  ["a pattern that backtracks", { pattern: "^(a+)+$" }, `${"a".repeat(60)}!`],
];
for (const [name, schema, value] of SCHEMAS) {
  test(`changed arguments with ${name} are 400 with the problems, and those of a model a failed result`, async (t) => {
    const parameters = { type: "object", properties: { value: schema } };
    const args = JSON.stringify({ value });
    const asking = define("save", () => "saved", { parameters, needsApproval: true, editable: true });
    const plain = define("keep", () => "kept", { parameters });
    const first = [call("c1", "save", { value: null }), call("c2", "keep", args)];
    const server = await startServer(t, { turns: [first, [say("ok")]], agent: { tools: [asking, plain] } });
    const { events, last } = await send.sse(t, server, { message: "Go" });
    const [failed] = events.flatMap((event) => (event.type === "tool_result" ? [event.data] : []));
    assert.deepEqual([failed?.id, failed?.status], ["c2", "failed"]);
    assert.match(failed?.output ?? "", /^The arguments do not fit:\n\//);
    assert.ok(last.type === "done");
    for (const transport of TRANSPORTS) {
      const approvals = [{ id: "c1", approved: true, arguments: args }];
      const { status, last: refused } = await send[transport](t, server, { approvals, state: last.state });
      assert.ok(refused.type === "error");
      assert.deepEqual([status, refused.code], [transport === "json" ? 400 : status, "invalid_request"]);
      assert.equal(refused.param, "/approvals/0/arguments");
      const { problems = [] } = refused;
      assert.ok(problems.length > 0 && problems.length <= 8);
      assert.match(problems[0]?.pointer ?? "", /^$|^\/value/);
    }
    const isLate = /too long/.test(failed?.output ?? "");
    const logged = server.log.filter((line) => /check by its parameters kept the server busy/.test(line));
    assert.equal(logged.length > 0, isLate);
  });
}
