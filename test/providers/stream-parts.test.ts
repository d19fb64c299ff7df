import assert from "node:assert/strict";
import { test } from "node:test";
import { createParser } from "eventsource-parser";
import fc from "fast-check";
import { SseDecoder } from "../../server/protocol/sse.ts";
import { ToolCallAssembler } from "../../server/providers/stream-pieces.ts";
import { MODEL_TAGS, type ThinkTagPiece, type ThinkTagRule, ThinkTags } from "../../server/providers/think-tags.ts";

type Piece = Record<string, unknown>;

function assemble(...pieces: Piece[]) {
  const assembler = new ToolCallAssembler();
  for (const piece of pieces) assembler.add(piece);
  return assembler.finish({
    finish: "stop",
    endsInCall: true,
    request: { messages: [], setup: { instructions: "", tools: [] } },
  });
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

/** Splits pieces into thinking and text; a piece after "!" is flagged as thinking. */
function split(pieces: readonly string[], rule: ThinkTagRule = MODEL_TAGS) {
  let [thinking, text] = ["", ""];
  const tags = new ThinkTags(rule, () => text);
  const say = (said: ThinkTagPiece) => {
    if (said.wasThinking) [thinking, text] = [thinking + text, ""];
    thinking += said.thinking;
    text += said.text;
  };
  for (const piece of pieces) say(piece.startsWith("!") ? tags.push(piece.slice(1), true) : tags.push(piece));
  say(tags.end());
  return [thinking, text];
}

test("tags at the start are taken out wherever the chunks are cut", () => {
  const answer = "\n<think>\nIs 1 < 2? </thin No.</think>\n\nYes, <b>it</b> is.";
  for (let first = 0; first <= answer.length; first++) {
    for (let second = first; second <= answer.length; second++) {
      const pieces = [answer.slice(0, first), answer.slice(first, second), answer.slice(second)];
      assert.deepEqual(split(pieces), ["\nIs 1 < 2? </thin No.", "Yes, <b>it</b> is."]);
    }
  }
});

test("an answer without tags is not touched, and its first letters are not held back", () => {
  assert.deepEqual(split(["  Hi", " there "]), ["", "  Hi there "]);
  assert.deepEqual(new ThinkTags(MODEL_TAGS, () => "").push("H"), { thinking: "", text: "H" });
  assert.deepEqual(split(["<", "table> is HTML"]), ["", "<table> is HTML"]);
  assert.deepEqual(split(["<thi"]), ["", "<thi"]);
});

test("tags behind the first word are what the answer is about", () => {
  assert.deepEqual(split(["Use <think>this</think>."]), ["", "Use <think>this</think>."]);
  assert.deepEqual(split(["<think>a</think>b <think>c"]), ["a", "b <think>c"]);
});

test("a tag that is never closed leaves no answer", () => {
  assert.deepEqual(split(["<thought>I wonder", " </thou"]), ["I wonder </thou", ""]);
});

test("thinking ends with the tag that it began with", () => {
  assert.deepEqual(split(["<think>a</thought>b</think>c"]), ["a</thought>b", "c"]);
});

test("a flag is thinking without tags, with them, and after an answer has begun", () => {
  assert.deepEqual(split(["!a", "!b", "c"]), ["ab", "c"]);
  assert.deepEqual(split(["!<thought>a", "!b", "</tho", "ught>c"]), ["ab", "c"]);
  assert.deepEqual(split(["!a", "</thought>c"]), ["a", "c"]);
  assert.deepEqual(split(["!<thought>a</thought>", "c"]), ["a", "c"]);
  assert.deepEqual(split(["a ", "!b", "c"]), ["b", "a c"]);
  assert.deepEqual(split(["a ", "!<thought>b", "</thought>c"]), ["b", "a c"]);
});

const QUIET = { ...MODEL_TAGS, mayLackOpening: false };

for (const [what, answer, thinking, text] of [
  ["ends thoughts", "I plan.\n</think>\n\nThe answer.", "I plan.\n", "The answer."],
  ["at the start ends none", "\n</think>\n\nok", "", "ok"],
  ["of another name ends thoughts, too", "Hm, 1 < 2.</thinking>Yes.", "Hm, 1 < 2.", "Yes."],
  ["ends thoughts once", "a</think>b</think>c", "a", "b</think>c"],
  ["after code ends thoughts", "`x` and\n```\ny\n```\nz</think>ok", "`x` and\n```\ny\n```\nz", "ok"],
  ["inside a block of code is text", "So:\n```html\n</think>\n```\nDone.", "", "So:\n```html\n</think>\n```\nDone."],
  ["inside a span of code is text", "Write ``</think>`` so.", "", "Write ``</think>`` so."],
  ["after an opening one in the text is text", "A <think> and a </think>.", "", "A <think> and a </think>."],
  ["that is none is text", "a </thin b </thoughts> c", "", "a </thin b </thoughts> c"],
] as const) {
  test(`a lone closing tag ${what}, wherever the chunks are cut`, () => {
    for (let first = 0; first <= answer.length; first++) {
      const pieces = [answer.slice(0, first), answer.slice(first)];
      assert.deepEqual(split(pieces), [thinking, text], `cut at ${first}`);
    }
    assert.deepEqual(split([...answer]), [thinking, text]);
    assert.deepEqual(split([answer], QUIET), ["", answer]);
    assert.deepEqual(split(["!Hm. ", "A ", answer]), ["Hm. ", `A ${answer}`]);
  });
}

test("tags that count anywhere are found anywhere, wherever the chunks are cut", () => {
  const rule = { names: ["x_thought"], anywhere: true, mayLackOpening: false };
  const answer = "<x_thought>a</x_thought>b <x <x_thought>c</x_thought>d";
  for (let at = 0; at <= answer.length; at++) {
    assert.deepEqual(split([answer.slice(0, at), answer.slice(at)], rule), ["ac", "b <x d"]);
  }
});

/** Splits the text at these positions. */
function pieces(text: string, cuts: readonly number[]): string[] {
  const ends = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].sort((a, b) => a - b);
  return [...ends, text.length].map((end, index) => text.slice(ends[index - 1] ?? 0, end));
}

const cuts = fc.array(fc.nat(), { maxLength: 12 });
const line = fc.oneof(
  fc.constantFrom("", "", "data", "data:", "data: a", "data:{}", "event: x", "event", ": comment", "id: 1", "retry: 5"),
  fc.string({ unit: "grapheme" }).map((text) => `data: ${text.replace(/[\r\n]/g, "")}`),
);
const stream = fc
  .tuple(fc.boolean(), fc.array(fc.tuple(line, fc.constantFrom("\n", "\r\n", "\r"))))
  .map(([hasMark, lines]) => `${hasMark ? "\uFEFF" : ""}${lines.flat().join("")}`);

test("an event stream means the same in any pieces, and what an independent reader reads", () => {
  const read = (parts: readonly string[]) => {
    const decoder = new SseDecoder();
    return parts.flatMap((part) => decoder.feed(part));
  };
  fc.assert(
    fc.property(stream, cuts, (text, places) => {
      const whole = read([text]);
      assert.deepEqual(read(pieces(text, places)), whole);
      const others: { event: string; data: string }[] = [];
      const parser = createParser({
        onEvent: ({ event = "message", data }) => others.push({ event: event || "message", data }),
      });
      // UTF-8 decoders remove the byte order mark before that reader. A carriage return at the very end may be the
      // first half of a line break, which waits for the next piece.
      parser.feed(`${text.replace(/^\uFEFF/, "")}\n`);
      assert.deepEqual(read([`${text}\n`]), others);
    }),
    { numRuns: 500 },
  );
});
