/** Whatever a client sends is a checked request or an error that names what is wrong; never a bug. */

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { StateBinding } from "../../server/agent/state.ts";
import { ALL_MEDIA_TYPES } from "../../server/protocol/attachments.ts";
import { parseJson } from "../../server/protocol/json.ts";
import { type MessageRules, parseChatRequest, parseSocketMessage } from "../../server/routes/parse-message.ts";
import { binding, isJudged, MAX_JSON_DEPTH } from "./judged.ts";

const rules = (more: Partial<StateBinding>): MessageRules => ({
  state: { ...binding, ...more },
  attachments: { maxCount: 3, mediaTypes: ALL_MEDIA_TYPES },
  maxMessageChars: 1000,
  maxJsonDepth: MAX_JSON_DEPTH,
});
const RULES = [
  rules({ secrets: [] }),
  rules({}),
  rules({ kind: "previous_response_id" }),
  rules({ kind: "previous_response_id", secrets: [] }),
];

/** Strings that mean something somewhere, and any others. */
const word = fc.oneof(
  fc.constantFrom("", "user", "assistant", "tool", "system", "image", "file", "clear", "stop", "resume"),
  fc.constantFrom("image/png", "application/pdf", "iVBORw0KGgo=", "data:image/png;base64,AA", "function"),
  fc.constantFrom("__proto__", "constructor", "\u0000", "\ud800", "a".repeat(1001)),
  fc.string({ unit: "grapheme" }),
);
const KEYS = [
  "message",
  "stream",
  "state",
  "attachments",
  "type",
  "run",
  "after",
  "previous_response_id",
  "signature",
  "conversation_history",
  "role",
  "content",
  "tool_calls",
  "tool_call_id",
  "id",
  "function",
  "name",
  "arguments",
  "data",
  "mime_type",
  "text",
  "image_url",
  "url",
  "file",
  "file_data",
  "filename",
  "__proto__",
  "toString",
] as const;

/** JSON that is built of the words that the parsers look for, so that it comes far into them. */
const { value: near } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 6, depthSize: "small" },
    word,
    fc.constantFrom(null, true, false, 0, -1, 1.5, 1e308),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(fc.constantFrom(...KEYS), tie("value"), { maxKeys: 6 }),
  ),
}));
/** A message whose fields are mostly of the right kind. */
const message = fc.record(
  {
    message: fc.oneof({ weight: 4, arbitrary: word }, near),
    stream: fc.oneof({ weight: 4, arbitrary: fc.boolean() }, near),
    type: fc.option(word, { nil: undefined }),
    state: near,
    attachments: fc.oneof(
      near,
      fc.array(
        fc.record({
          type: word,
          name: word,
          mime_type: word,
          data: fc.oneof(word, fc.base64String()),
        }),
      ),
    ),
    run: near,
    after: near,
    previous_response_id: near,
  },
  { requiredKeys: [] },
);
const body = fc.oneof({ weight: 4, arbitrary: message }, near, fc.jsonValue());

test("any bytes are JSON or invalid_json", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => void isJudged(() => parseJson(bytes, MAX_JSON_DEPTH))),
    { numRuns: 300 },
  );
});

/** Levels of arrays and objects. */
function depthOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

test("JSON is read as JSON.parse reads it, up to its depth and no further", () => {
  const text = fc.tuple(fc.json(), fc.constantFrom("", " ", "\n\t"));
  fc.assert(
    fc.property(text, fc.integer({ min: 1, max: 4 }), ([json, space], maxDepth) => {
      const read = () => parseJson(Buffer.from(space + json + space), maxDepth);
      const expected: unknown = JSON.parse(json);
      assert.equal(isJudged(read), depthOf(expected) <= maxDepth);
      if (depthOf(expected) <= maxDepth) assert.deepEqual(read(), expected);
    }),
    { numRuns: 300 },
  );
});

test("any body and any socket message is a request or a 4xx in words", () => {
  fc.assert(
    fc.property(body, fc.constantFrom(...RULES), (value, rule) => {
      const parsed = () => parseJson(Buffer.from(JSON.stringify(value)), MAX_JSON_DEPTH);
      isJudged(() => {
        const { request } = parseChatRequest(parsed(), rule);
        assert.equal(typeof request.message, "string");
      });
      isJudged(() => parseSocketMessage(parsed(), {}, rule));
    }),
    { numRuns: 1500 },
  );
  assert.equal(Object.keys(Object.prototype).length, 0);
});

test("a file is taken as it is, and not with any one character that is not base64", () => {
  const png = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex");
  const [rule] = RULES;
  assert.ok(rule);
  const parse = (data: string) =>
    parseChatRequest(
      {
        message: "",
        stream: false,
        attachments: [{ type: "image", name: "a", mime_type: "image/png", data }],
      },
      rule,
    );
  fc.assert(
    fc.property(fc.uint8Array(), fc.nat(), fc.constantFrom(..." -_\n\u0000é%"), (bytes, place, odd) => {
      const data = Buffer.concat([png, bytes]).toString("base64");
      assert.equal(parse(data).request.attachments[0]?.url, `data:image/png;base64,${data}`);
      const at = place % data.length;
      assert.equal(
        isJudged(() => parse(data.slice(0, at) + odd + data.slice(at + 1))),
        false,
      );
    }),
    { numRuns: 200 },
  );
});
