import assert from "node:assert/strict";
import { test } from "node:test";
import { MODEL_TAGS, type ThinkTagRule, ThinkTags } from "../../server/providers/think-tags.ts";

/** What the splitter makes of pieces; a piece after "!" is flagged as thinking. */
function split(pieces: readonly string[], rule: ThinkTagRule = MODEL_TAGS) {
  const tags = new ThinkTags(rule);
  const all = pieces.map((piece) => (piece.startsWith("!") ? tags.push(piece.slice(1), true) : tags.push(piece)));
  all.push(tags.end());
  const join = (name: "thinking" | "text") => all.map((said) => said[name]).join("");
  return [join("thinking"), join("text")];
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
  assert.deepEqual(new ThinkTags(MODEL_TAGS).push("H"), { thinking: "", text: "H" });
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

test("a closing tag at the start of an answer that had no thinking is text", () => {
  assert.deepEqual(split(["</think>ok"]), ["", "</think>ok"]);
});

test("tags that count anywhere are found anywhere, wherever the chunks are cut", () => {
  const rule = { names: ["x_thought"], anywhere: true };
  const answer = "<x_thought>a</x_thought>b <x <x_thought>c</x_thought>d";
  for (let at = 0; at <= answer.length; at++) {
    assert.deepEqual(split([answer.slice(0, at), answer.slice(at)], rule), ["ac", "b <x d"]);
  }
});
