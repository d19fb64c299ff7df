import assert from "node:assert/strict";
import { test } from "node:test";
import { FIRST_MESSAGES, type MessageSlots, RepeatedJson } from "../../server/providers/upstream/repeated-json.ts";

const SLOTS: MessageSlots = {
  texts: [
    { key: "content", holder: ({ delta }) => delta },
    { key: "thought", holder: ({ delta }) => delta },
  ],
  others: [
    { key: "number", holder: (message) => message },
    { key: "noise", holder: (message) => message },
  ],
};

const chunk = (content: string, number = 7, noise = "ab") =>
  `{"number":${number},"id": "x","delta":{"role":"a","content": ${JSON.stringify(content)}},"noise":"${noise}"}`;

/** What a parser makes of a text, as something to compare. */
function outcome(parse: () => unknown): unknown {
  try {
    return { value: structuredClone(parse()) };
  } catch (error) {
    assert.ok(error instanceof SyntaxError);
    return "SyntaxError";
  }
}

/** In the middle of a stream, where likeness is looked for. */
function parserOfLongStream(): RepeatedJson {
  const json = new RepeatedJson(SLOTS);
  for (let count = 0; count < FIRST_MESSAGES; count++) json.parse("{}");
  return json;
}

/** Parses all of them as one stream, and each alone. */
function assertParsedAsEver(texts: readonly string[]): void {
  const json = parserOfLongStream();
  for (const text of texts) {
    assert.deepEqual(
      outcome(() => json.parse(text)),
      outcome(() => JSON.parse(text)),
      text,
    );
  }
}

test("messages of a stream are what JSON.parse makes of them, wherever two differ and whatever is broken", () => {
  const told = chunk("Hello");
  const pieces = ['"', "\\", "{", "}", "[", ",", ":", "0", "1", "-", ".", "e", " ", "\n", "é", "😀"];
  const others = [chunk(" world", 8), chunk("x", 9, "")];
  for (let at = 0; at <= told.length; at++) {
    const cut = [told.slice(0, at) + told.slice(at + 1), told.slice(0, at)];
    const changed = pieces.flatMap((piece) => [
      told.slice(0, at) + piece + told.slice(at),
      told.slice(0, at) + piece + told.slice(at + 1),
    ]);
    // A whole one in between: each meets the pattern of a message that is right.
    assertParsedAsEver([told, ...[...cut, ...changed].flatMap((text) => [text, ...others])]);
  }
});

test("a member that is there twice, under another spelling or in another object is not taken for the text", () => {
  const shapes: ((text: string) => string)[] = [
    (text) => `{"delta":{"content":"a","content":"${text}"}}`,
    (text) => `{"delta":{"content":"${text}","conten\\u0074":"b"}}`,
    (text) => `{"delta":{"conten\\u0074":"b"},"content":"${text}"}`,
    (text) => `{"content":"${text}","delta":{"conten\\u0074":"${text}"}}`,
    (text) => `{"delta":{"a\\"content":"${text}"}}`,
    (text) => `{"delta":{"content":"${text}"},"delta":{"content":"b"}}`,
    (text) => `{"delta":{"content":["${text}"],"thought":"${text}"}}`,
    (text) => `{"delta":{"content":"${text}\\n","thought":"\\u00e9${text}"}}`,
    // The one that counts has what another has, and what the first proof would give it.
    (text) => `{"delta":{"content":"${text}","content" :"one."}}`,
    (text) => `{"delta":{"content":"${text}","\\u0063ontent":"one."}}`,
    (text) => `{"delta":{"content" :"one."},"other":{"content":"${text}"}}`,
    (text) => `{"delta":{"content":"a"},"number":${text.length},"number" :1${text.length}}`,
    (text) => `[{"delta":{"content":"${text}"}}]`,
    (text) => `{"delta":{"content":"${text}"},"number":1.5,"noise":null}`,
    (text) => `{"delta":{"content":"${text}"},"number":-${text.length}}`,
  ];
  const texts = ["one", "", "three", 'a "quoted" one', "\\", "日本語", "one"].map((text) =>
    JSON.stringify(text).slice(1, -1),
  );
  for (const shape of shapes) assertParsedAsEver(texts.map(shape));
  // All in one stream, in turns.
  assertParsedAsEver(texts.flatMap((text) => shapes.map((shape) => shape(text))));
});

test("numbers that JSON does not have, or that are not exact, are judged as ever", () => {
  const numbers = ["1", "0", "00", "01", "10", "", "1e3", "2.0", "-1", "9007199254740993", "+1", "8"];
  const tiny = ["1.00000000000000000001", "0.00000000000000000001", "0e1", "0E-1"];
  assertParsedAsEver([...numbers, ...tiny].map((number) => chunk("a").replace("7", number)));
  const spoken = tiny.flatMap((number) => Array<string>(2).fill(`{"delta":{"content":${number}}}`));
  assertParsedAsEver(spoken);
});

test("of messages that differ in their text, number and noise, only these are read", () => {
  const json = parserOfLongStream();
  const first = json.parse(chunk("Hello"));
  // The very object of before: nothing else of the text was parsed.
  assert.equal(json.parse(chunk(" wörld", 8, "")), first);
  assert.deepEqual(first, JSON.parse(chunk(" wörld", 8, "")));
  assert.equal(json.parse(chunk("", 1234567890, "xyz")), first);
  // What JSON writes in another way is parsed, and what follows is quick again.
  assert.notEqual(json.parse(chunk("a\nb")), first);
  assert.equal(json.parse(chunk("!")), first);
});

test("a server that writes no two messages alike is asked for likeness a few times only", () => {
  const json = parserOfLongStream();
  const unlike = (at: number) => `{"at":${at},"delta":{"content":"a"}}`;
  for (let at = 0; at < 5; at++) assert.deepEqual(json.parse(unlike(at)), JSON.parse(unlike(at)));
  const one = json.parse(unlike(9));
  assert.notEqual(json.parse(unlike(9)), one);
});

test("in the first messages of a stream nobody looks for likeness, which a short answer would only wait for", () => {
  const json = new RepeatedJson(SLOTS);
  const first = Array.from({ length: FIRST_MESSAGES }, (_, at) => json.parse(chunk("a", at)));
  assert.equal(new Set(first).size, FIRST_MESSAGES);
  const pattern = json.parse(chunk("a"));
  assert.equal(json.parse(chunk("b")), pattern);
});
