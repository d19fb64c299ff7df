/** `answer_parts`: the order of an answer, in the current form and in forms of earlier builds. */

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { AssistantMessage, HistoryMessage } from "../../server/protocol/chat.ts";
import { readParts } from "../../server/providers/answer-parts.ts";
import { textContent } from "../../server/providers/history.ts";
import type { Provider } from "../../server/providers/provider.ts";
import { claude, stream as claudeStream } from "../support/anthropic.ts";
import { bedrock, stream as bedrockStream } from "../support/bedrock.ts";
import { historyOf, WEATHER } from "../support/chat-servers.ts";
import { ask, askOnce, open, responsesProvider } from "../support/upstream-conversation.ts";
import { fixture, startUpstream, type UpstreamReply, type UpstreamServer } from "../support/upstream-server.ts";

interface Form {
  name: string;
  providerOf(upstream: UpstreamServer): Provider | Promise<Provider>;
  /** The answer, and the one after it. */
  replies: () => [UpstreamReply, UpstreamReply];
  /** The answer as stored by the build of commit 8fef9bc5, byte for byte. */
  former: string;
  /** The kinds of items that are sent back, in order. */
  // biome-ignore lint/suspicious/noExplicitAny: each API has a body of its own.
  kinds(sent: any): unknown[];
  order: string[];
}

const unstored = (upstream: UpstreamServer) =>
  responsesProvider(upstream, { model: "gpt-5.2", settings: { store: false } });
const responses = (name: string) => (): [UpstreamReply, UpstreamReply] => [
  { body: [fixture(`responses/${name}`)] },
  { body: [fixture("responses/text")] },
];
// biome-ignore lint/suspicious/noExplicitAny: each API has a body of its own.
const inputKinds = ({ input }: any) => input.slice(1).map(({ type, role, phase }: any) => type ?? phase ?? role);

const FORMS: Form[] = [
  {
    name: "Claude's layout",
    providerOf: claude,
    replies: () => [claudeStream("interleaved-thinking"), claudeStream("text")],
    former: `{"role":"assistant","content":"Let me look.\\n\\nBoth, in fact.","tool_calls":[{"id":"toolu_11","type":"function","function":{"name":"get_weather","arguments":"{\\"city\\":\\"Lima\\"}"}},{"id":"toolu_12","type":"function","function":{"name":"get_weather","arguments":"{\\"city\\":\\"Oslo\\"}"}}],"thinking_blocks":[{"type":"thinking","thinking":"First Lima.","signature":"c2lnMQ=="},{"type":"thinking","thinking":"Then Oslo.","signature":"c2lnMg=="}],"anthropic_layout":["thinking",[0,12],"thinking",[14,28],"tool_use","tool_use"]}`,
    kinds: ({ messages }) => messages[1].content.map(({ type }: { type: string }) => type),
    order: ["thinking", "text", "thinking", "text", "tool_use", "tool_use"],
  },
  {
    name: "Claude's layout on Bedrock",
    providerOf: bedrock,
    replies: () => [bedrockStream("claude-interleaved-thinking"), bedrockStream("text")],
    former: `{"role":"assistant","content":"First.\\n\\nSecond.","tool_calls":[{"id":"tooluse_a","type":"function","function":{"name":"get_weather","arguments":"{}"}}],"thinking_blocks":[{"type":"thinking","thinking":"One.","signature":"sig1"},{"type":"thinking","thinking":"Two.","signature":"sig2"}],"anthropic_layout":["thinking",[0,6],"thinking",[8,15],"tool_use"]}`,
    kinds: ({ messages }) => messages[1].content.flatMap((block: object) => Object.keys(block)),
    order: ["reasoningContent", "text", "reasoningContent", "text", "toolUse"],
  },
  {
    name: "OpenAI's output with reasoning, a phase and calls",
    providerOf: unstored,
    replies: responses("encrypted-reasoning-and-calls"),
    former: `{"role":"assistant","content":"Let me look.","tool_calls":[{"id":"call_Lima","type":"function","function":{"name":"get_weather","arguments":"{\\"city\\":\\"Lima\\"}"}},{"id":"call_Oslo","type":"function","function":{"name":"get_weather","arguments":"{\\"city\\":\\"Oslo\\"}"}}],"openai_output":[{"type":"item","item":{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"**Planning**"}],"encrypted_content":"gAAAA-first"}},{"type":"message","start":0,"end":12,"phase":"commentary"},{"type":"item","item":{"id":"rs_2","type":"reasoning","summary":[],"encrypted_content":"gAAAA-second"}},{"type":"function_call","call_id":"call_Lima"},{"type":"function_call","call_id":"call_Oslo"}]}`,
    kinds: inputKinds,
    order: [
      ...["reasoning", "commentary", "reasoning", "function_call", "function_call"],
      ...["function_call_output", "function_call_output", "assistant", "user"],
    ],
  },
  {
    name: "OpenAI's output with hosted calls, and sources that do not go back",
    providerOf: unstored,
    replies: responses("web-search"),
    former: `{"role":"assistant","content":"Lima is calm. ([example.com](https://example.com/lima))\\n\\nSources:\\n\\n- [Weather \\\\[live\\\\] \\\\& more](https://example.org/weather_%28lima%29)","openai_output":[{"type":"item","item":{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"Lima news today","queries":["Lima news today"]}}},{"type":"item","item":{"id":"ws_2","type":"web_search_call","status":"completed","action":{"type":"open_page","url":"https://example.com/lima"}}},{"type":"message","start":0,"end":55}]}`,
    kinds: inputKinds,
    order: ["web_search_call", "web_search_call", "assistant", "user"],
  },
];

/** The history of one message with its tool calls, as a client stores it. */
async function historyFrom({ providerOf, replies }: Form): Promise<HistoryMessage[]> {
  await using upstream = await startUpstream(...replies());
  const conversation = open(await providerOf(upstream), { tools: [WEATHER] });
  const { events } = await ask(conversation);
  const calls = events.flatMap((event) => (event.type === "call" ? [event.call] : []));
  conversation.answer(calls.map(({ id, name }) => ({ id, name, content: textContent("mild"), failed: false })));
  if (calls.length > 0) await ask(conversation);
  return JSON.parse(JSON.stringify(historyOf(conversation.state())));
}

for (const form of FORMS) {
  test(`what goes up of an answer is the same, byte for byte, from a state of an earlier build: ${form.name}`, async () => {
    const history = await historyFrom(form);
    const answer = history[1] as AssistantMessage;
    const former: AssistantMessage = JSON.parse(form.former);
    const { answer_parts, ...plain } = answer;
    const { anthropic_layout: _layout, openai_output: _output, ...formerPlain } = former;
    assert.ok(answer_parts !== undefined && "content" in plain);
    // Earlier builds listed sources after the text; now they are not part of it.
    const content = formerPlain.content?.split("\n\nSources:")[0] ?? null;
    assert.deepEqual(plain, { ...formerPlain, content }, "all else is kept as it was");
    const sentFor = async (message: AssistantMessage) => {
      const state = { conversation_history: history.with(1, message) };
      const { sent, error } = await askOnce(form.providerOf, form.replies()[1], { state, tools: [WEATHER] });
      assert.equal(error, undefined);
      return sent;
    };
    const sent = await sentFor(answer);
    assert.deepEqual(form.kinds(sent), form.order);
    assert.equal(JSON.stringify(await sentFor(former)), JSON.stringify(sent));
  });
}

const part = fc.record(
  {
    type: fc.constantFrom("text", "text", "call", "reasoning", "item", "", 7, "__proto__"),
    span: fc.oneof(
      fc.array(fc.oneof(fc.integer({ min: -3, max: 12 }), fc.jsonValue()), { maxLength: 3 }),
      fc.jsonValue(),
    ),
    notes: fc.jsonValue(),
    said: fc.constant("Obey."),
    call: fc.constant({ id: "forged" }),
  },
  { requiredKeys: ["type"] },
);
const list = fc.oneof(fc.array(fc.oneof(part, fc.jsonValue())), fc.jsonValue());

test("whatever a client makes of the parts, no text goes back twice, no call is lost or made up, and only sources are left out", () => {
  const calls = fc
    .nat(2)
    .map((count) =>
      ["a", "b"]
        .slice(0, count)
        .map((id) => ({ id, type: "function", function: { name: "f", arguments: "{}" } }) as const),
    );
  fc.assert(
    fc.property(
      list,
      calls,
      fc.boolean(),
      fc.constantFrom("", "Hello there."),
      (parts, tool_calls, mayLeaveOut, content) => {
        const message = { role: "assistant", content, tool_calls, answer_parts: { provider: "acme", parts } } as const;
        const read = readParts({ ...message, tool_calls: [...tool_calls] }, "acme", mayLeaveOut);
        assert.deepEqual(
          read.flatMap(({ call }) => (call === undefined ? [] : [call])),
          tool_calls,
        );
        let rest = content as string;
        for (const { said = "" } of read) {
          const at = rest.indexOf(said);
          assert.ok(at >= 0 && (mayLeaveOut || rest.slice(0, at).trim() === ""), JSON.stringify(read));
          rest = rest.slice(at + said.length);
        }
        assert.ok(mayLeaveOut || rest.trim() === "", JSON.stringify(read));
      },
    ),
    { numRuns: 2000 },
  );
});

test("parts that another provider has made are not read: its notes mean nothing to this one", () => {
  const parts = [
    { type: "reasoning", text: "Hm." },
    { type: "text", span: [0, 2], notes: { other: {} } },
  ];
  for (const provider of ["other", undefined, "__proto__"]) {
    const message: AssistantMessage = { role: "assistant", content: "Hi", answer_parts: { provider, parts } };
    assert.deepEqual(readParts(message, "acme"), [{ own: {}, said: "Hi" }]);
  }
});
