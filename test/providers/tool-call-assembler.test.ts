import assert from "node:assert/strict";
import { test } from "node:test";
import { ToolCallAssembler } from "../../server/providers/tool-call-assembler.ts";

type Piece = Record<string, unknown>;

function assemble(...pieces: Piece[]) {
  const assembler = new ToolCallAssembler();
  for (const piece of pieces) assembler.add(piece);
  return assembler.finish({ finish: "stop", endsInCall: true, taken: new Set(), label: "Test" });
}

const fn = (name?: string, args?: unknown) => ({
  ...(name === undefined ? {} : { name }),
  ...(args === undefined ? {} : { arguments: args }),
});

function brief(...pieces: Piece[]) {
  return assemble(...pieces).map((call) => `${call.function.name}${call.function.arguments}`);
}

test("pieces with the same id belong together, whatever their index says", () => {
  assert.deepEqual(
    brief(
      { id: "a", index: 0, function: fn("f", '{"x"') },
      { id: "b", index: 0, function: fn("g", "{}") },
      { id: "a", index: 1, function: fn(undefined, ":1}") },
    ),
    ['f{"x":1}', "g{}"],
  );
});

test("a new id under an old index is a new call, and later pieces of that index are the new call's", () => {
  assert.deepEqual(
    brief(
      { id: "a", index: 0, function: fn("f", "{}") },
      { id: "b", index: 0, function: fn("g", '{"y"') },
      { index: 0, function: fn(undefined, ":2}") },
    ),
    ["f{}", 'g{"y":2}'],
  );
});

test("without id and index, a piece belongs to the latest call, and a second name begins a second call", () => {
  assert.deepEqual(
    brief({ function: fn("f", '{"x"') }, { function: fn(undefined, ":1}") }, { function: fn("f", '{"x":2}') }),
    ['f{"x":1}', 'f{"x":2}'],
  );
});

test("a name and an id that come late are taken", () => {
  const calls = assemble({ index: 0, function: fn("", '{"x":') }, { index: 0, id: "late", function: fn("f", "1}") });
  assert.deepEqual(calls, [{ id: "late", type: "function", function: { name: "f", arguments: '{"x":1}' } }]);
});

test("an empty id is no id: one of nine letters and digits is minted, different for each call", () => {
  const [a, b] = assemble({ id: "", index: 0, function: fn("f", "{}") }, { id: "", index: 1, function: fn("g", "{}") });
  assert.match(a?.id ?? "", /^[0-9a-z]{9}$/);
  assert.match(b?.id ?? "", /^[0-9a-z]{9}$/);
  assert.notEqual(a?.id, b?.id);
});

test("arguments: none are {}, white space is {}, null adds nothing, an object is its JSON", () => {
  assert.deepEqual(
    brief(
      { index: 0, function: fn("a") },
      { index: 1, function: fn("b", " \n") },
      { index: 2, function: fn("c", null) },
      { index: 3, function: fn("d", { x: 1 }) },
      { index: 4, function: fn("e", "{broken") },
    ),
    ["a{}", "b{}", "c{}", 'd{"x":1}', "e{broken"],
  );
});

test("a name that is repeated in each piece is one name", () => {
  assert.deepEqual(brief({ index: 0, function: fn("f", '{"x"') }, { index: 0, function: fn("f", ":1}") }), [
    'f{"x":1}',
  ]);
});

test("fields that are not ours stay on the call and on its function", () => {
  const [call] = assemble({
    id: "a",
    index: 0,
    provider_specific_fields: { thought_signature: "s" },
    function: { ...fn("f", "{}"), provider_specific_fields: { thought_signature: "t" } },
  });
  assert.deepEqual(call, {
    provider_specific_fields: { thought_signature: "s" },
    id: "a",
    type: "function",
    function: { provider_specific_fields: { thought_signature: "t" }, name: "f", arguments: "{}" },
  });
});

test("ids that are names of Object.prototype are ordinary ids", () => {
  const ids = ["__proto__", "constructor", "toString"];
  const calls = assemble(...ids.map((id) => ({ id, function: fn("f", "{}") })));
  assert.deepEqual(
    calls.map((call) => call.id),
    ids,
  );
});

test("whole calls under one index without ids are calls of their own, also when an id comes with one", () => {
  assert.deepEqual(
    brief(
      { index: 0, function: fn("f", '{"x":1}') },
      { index: 0, function: fn("f", '{"x":2}') },
      { id: "a", index: 0, function: fn("g", "{}") },
    ),
    ['f{"x":1}', 'f{"x":2}', "g{}"],
  );
});

test("an id that a second call has again, under another index, is that call's too; both get ids of their own", () => {
  const calls = assemble(
    { id: "f", index: 0, function: fn("f", '{"x":1}') },
    { id: "f", index: 1, function: fn("f", '{"x":2}') },
  );
  assert.deepEqual(
    calls.map((call) => call.function.arguments),
    ['{"x":1}', '{"x":2}'],
  );
  assert.notEqual(calls[0]?.id, calls[1]?.id);
});
