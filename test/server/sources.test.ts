/** Sources of answers, from the three providers' APIs, tools and hosted agents, in events, states and doors. */

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Sources } from "../../server/agent/sources.ts";
import { responses, toolResult } from "../../server/parley-agent.ts";
import type { ConversationState, HistoryMessage } from "../../server/protocol/chat.ts";
import type { StreamEvent } from "../../server/protocol/events.ts";
import type { FoundSource, ModelEvent, Provider } from "../../server/providers/provider.ts";
import { claude } from "../support/anthropic.ts";
import { serve } from "../support/chat-servers.ts";
import { onEveryTransport, post, send, typesOf } from "../support/chat-transports.ts";
import { call, fail, type Step, say, think } from "../support/scripted-provider.ts";
import { type ServerOptions, startServer } from "../support/start-server.ts";
import { define } from "../support/test-tools.ts";
import { chatProvider, responsesProvider } from "../support/upstream-conversation.ts";
import { fixture, startUpstream, type UpstreamServer } from "../support/upstream-server.ts";

const source = (found: FoundSource): Step => ({ type: "source", source: found });
const PAGE = { title: "Delivery", url: "https://acme.example/delivery" };

type SourceData = Extract<StreamEvent, { type: "source" }>["data"];

const sourcesIn = (events: readonly StreamEvent[]): SourceData[] =>
  events.flatMap((event) => (event.type === "source" ? [event.data] : []));

/** Inserts `⟦id⟧` at each position, counted from the beginning of the text as in clients. */
function withMarks(text: string, marks: readonly { id: number; at: number }[]): string {
  return [...marks]
    .reverse()
    .sort((one, other) => other.at - one.at)
    .reduce((all, { id, at }) => `${all.slice(0, at)}⟦${id}⟧${all.slice(at)}`, text);
}

/** The texts between tool calls with their marks, positioned as in a client. Asserts that marks follow their text. */
function readMarked(events: readonly StreamEvent[]): string[] {
  const parts: { text: string; marks: { id: number; at: number }[] }[] = [{ text: "", marks: [] }];
  for (const event of events) {
    const part = parts.at(-1) ?? assert.fail();
    if (event.type === "token") part.text += event.data;
    if (event.type === "thinking" && event.data === part.text) part.text = "";
    if (["tool_call", "tool_result", "tool_approval"].includes(event.type)) parts.push({ text: "", marks: [] });
    if (event.type !== "source") continue;
    const { id, at } = event.data;
    if (at === undefined) continue;
    assert.ok(at <= part.text.length, `${at} is in ${JSON.stringify(part.text)}`);
    part.marks.push({ id, at });
  }
  return parts.filter(({ text }) => text !== "").map(({ text, marks }) => withMarks(text, marks));
}

/** The text of `done` with its marks. */
function doneMarked(events: readonly StreamEvent[]): string {
  const done = events.at(-1);
  assert.ok(done?.type === "done");
  return withMarks(
    done.data,
    (done.sources ?? []).flatMap(({ id, at }) => at.map((place) => ({ id, at: place }))),
  );
}

/** Ignores the order of marks at the same position. */
const alike = (marked: string) => marked.replace(/(?:⟦\d⟧)+/g, (ids) => (ids.match(/\d/g) ?? []).sort().join());

const hosted = { settings: { hostedTools: [{ type: "web_search" as const }] } };
const GEMINI = ["https://vertexaisearch.cloud.google.com/grounding-api-redirect/AUZ1", "Klima.pdf"];
const GROUNDED = "Grüße 🌍 aus 東京⟦1⟧⟦2⟧: **12°⟦2⟧**. Ende.";

const WIRES: [string, (upstream: UpstreamServer) => Provider | Promise<Provider>, string, string[]][] = [
  [
    "responses/places",
    (upstream) => responsesProvider(upstream, hosted),
    "Lima 🌤️ ist **mild** ([example⟦1⟧.com](https://example.com/lima))⟦1⟧.\n\n| 都市 | 温度 |\n| --- | --- |\n| 東京 👩‍🚀⟦2⟧ | 12° |\n\n" +
      "```sh\necho '【1】'\n```\nSiehe 【AGB】 dort⟦3⟧.⟦4⟧",
    ["https://example.com/lima", "https://example.org/tokyo_(jp)", "terms.pdf", "https://example.net/end"],
  ],
  [
    "chat-completions/annotations",
    chatProvider,
    "Rust 🦀 ist schnell.⟦1⟧ 東京は雨.⟦2⟧",
    ["https://www.rust-lang.org/", "https://www.jma.go.jp/"],
  ],
  ["chat-completions/litellm-gemini-grounded", chatProvider, GROUNDED, GEMINI],
  [
    "gemini/grounded",
    ({ url }) => serve("gemini/gemini-3-flash", { GEMINI_API_KEY: "AIza-test", GEMINI_BASE_URL: url }),
    GROUNDED,
    GEMINI,
  ],
  ["anthropic/web-search", claude, "In Lima 🌤️ ist es 19 °C warm⟦1⟧.", ["https://example.com/lima"]],
];

for (const [wire, providerOf, expected, places] of WIRES) {
  test(`${wire}: sources stand where the provider says, in pieces of every size, and OpenAI's marks are gone`, async (t) => {
    await using upstream = await startUpstream();
    const server = await startServer(t, { provider: await providerOf(upstream) });
    const body = Buffer.from(fixture(wire));
    for (const size of [5, 17, 64, 89, 233, 610, 1597, body.length]) {
      const pieces = Array.from({ length: Math.ceil(body.length / size) }, (_, at) =>
        body.subarray(at * size, (at + 1) * size),
      );
      upstream.reply({ body: pieces });
      const { events, last } = await send.sse(t, server, { message: "Hi" });
      assert.deepEqual(readMarked(events).map(alike), [alike(expected)], `pieces of ${size}`);
      assert.equal(alike(doneMarked(events)), alike(expected));
      assert.ok(last.type === "done");
      assert.deepEqual(
        last.sources?.map(({ url, file }) => url ?? file),
        places,
      );
      assert.doesNotMatch(JSON.stringify(last.state), /grounding|annotations|example\.net/);
    }
  });
}

const TEXTS = fc
  .array(
    fc.constantFrom(
      ..."【】†4:a 東🚀\n",
      "\uE200",
      "\uE201",
      "【4:0†source】",
      "【12†terms.pdf】",
      "\uE200cite\uE202turn0search1\uE201",
      "【AGB】",
      "【1】",
      "【4:0†",
      "\uE200file",
      "long ".repeat(90),
    ),
    { maxLength: 14 },
  )
  .map((parts) => parts.join(""));
const WHOLE_MARK = /【\d{1,4}(?::\d{1,4})?†[^【】\n]{0,200}】|\uE200[^\uE200\uE201\n]{0,400}\uE201/g;

test("however a text is cut, its marks are gone, nothing else is, and a place stays behind the same words", () => {
  fc.assert(
    fc.property(TEXTS, fc.array(fc.nat(60), { maxLength: 6 }), fc.nat(60), (text, cuts, place) => {
      const at = Math.min(place, text.length);
      const ends = [...new Set([...cuts.filter((cut) => cut < text.length), text.length])].sort((a, b) => a - b);
      const batches = ends.map((end, index): ModelEvent[] => [
        { type: "text", delta: text.slice(ends[index - 1] ?? 0, end) },
        { type: "usage", usage: { input_tokens: 1, output_tokens: 1 } },
      ]);
      batches.push([
        { type: "source", source: { url: PAGE.url, back: text.length - at } },
        { type: "end", finish: "stop" },
      ]);
      const sources = new Sources();
      let said = "";
      let found: number[] = [];
      for (const event of batches.flatMap((batch) => sources.read(batch))) {
        if (event.type === "text") said += event.delta;
        if (event.type === "source") found = [said.length - (event.source.back ?? Number.NaN), said.length];
      }
      assert.equal(said, text.replace(WHOLE_MARK, ""));
      const before = [...text.matchAll(WHOLE_MARK)].reduce(
        (sum, { 0: mark, index }) => sum - Math.min(mark.length, Math.max(0, at - index)),
        at,
      );
      // A text that may be the beginning of a mark is still withheld when the source arrives.
      assert.equal(found[0], Math.min(before, found[1] ?? Number.NaN));
    }),
    { numRuns: 3000 },
  );
});

const search = (sources: unknown, more = {}) => define("search", () => toolResult({ sources } as never), more);
const FOUND = [
  { ...PAGE, text: "Three days to Tokyo. Returns are free." },
  { title: "Terms", text: "3 days" },
];

test("a tool's sources come behind its result without a place, on every transport, and go to the model and the state", async (t) => {
  const options = (): ServerOptions => ({
    turns: [[call("c1", "search")], [say("Three days.")], [say("Yes.")]],
    agent: { tools: [search(FOUND)] },
  });
  const { sse, json } = await onEveryTransport(t, options, { message: "When?" });
  assert.deepEqual(typesOf(sse.events), ["tool_call", "tool_result", "source", "source", "token", "done"]);
  const expected = [
    { id: 1, ...PAGE, quote: FOUND[0]?.text },
    { id: 2, title: "Terms", file: "Terms", quote: "3 days" },
  ];
  assert.deepEqual(sourcesIn(sse.events), expected);
  const listed = expected.map((one) => ({ ...one, at: [] }));
  for (const { last } of [sse, json]) assert.deepEqual(last.type === "done" && last.sources, listed);
  const server = await startServer(t, options());
  const { last } = await send.sse(t, server, { message: "When?" });
  const message = { role: "tool", tool_call_id: "c1", content: "", sources: FOUND };
  assert.deepEqual(last.state?.conversation_history?.[2], message);
  await send.json(t, server, { message: "Sure?", state: last.state });
  for (const { messages } of server.model.asked.slice(1)) assert.deepEqual(messages[2], message);
  for (const wrong of [1, [{ url: "x" }], [{ title: 1 }], [{ title: "a", text: {} }]]) {
    const history = last.state?.conversation_history?.map((one) =>
      "sources" in one ? { ...one, sources: wrong } : one,
    );
    const response = await post(server, { message: "Hi", stream: false, state: { conversation_history: history } });
    assert.deepEqual([response.status, (await response.json()).error.code], [400, "invalid_state"]);
  }
});

test("clients get at most 20 sources of tools in a run, each once; addresses are of http or https", async (t) => {
  const many = (from: number) =>
    Array.from({ length: 15 }, (_, index) => ({
      title: `Page ${from + index}`,
      url: `https://a.example/${from + index}`,
    }));
  const pages = [many(10), many(20)];
  const tools = [define("search", () => toolResult({ sources: pages.shift() ?? [] }))];
  const turns = [[call("c1", "search")], [call("c2", "search")], [say("Done.")]];
  const server = await startServer(t, { turns, agent: { tools } });
  const { events } = await send.sse(t, server, { message: "Hi" });
  assert.deepEqual(
    sourcesIn(events).map(({ id, url }) => [id, url]),
    Array.from({ length: 20 }, (_, index) => [index + 1, `https://a.example/${10 + index}`]),
  );
  for (const wrong of [
    {},
    [{ url: "https://a.example" }],
    [{ title: "a", url: "javascript:alert(1)" }],
    [{ title: "a", page: 1 }],
  ]) {
    const failing = await startServer(t, {
      turns: [[call("c1", "search")], [say("No.")]],
      agent: { tools: [search(wrong)] },
    });
    const result = (await send.sse(t, failing, { message: "Hi" })).events.find(({ type }) => type === "tool_result");
    assert.equal(result?.type === "tool_result" && result.data.status, "failed");
  }
});

test("what is no page, too long or not plain never reaches clients", async (t) => {
  const long = "x".repeat(3000);
  const turn = [
    say("Hi."),
    source({ url: "javascript:alert(1)", back: 0 }),
    source({ url: `https://a.example/${long}`, back: 0 }),
    source({ title: "nothing", back: 0 }),
    source({ url: "https://a.example/a b", title: `\u202Ee\nv${long}`, quote: `q\u0000${long}`, back: 99 }),
    source({ file: "terms.pdf", title: "", back: -5 }),
    source({ file: "terms.pdf", title: "Other", back: 0 }),
  ];
  const server = await startServer(t, { turns: [turn] });
  const [first, ...others] = sourcesIn((await send.sse(t, server, { message: "Hi" })).events);
  assert.deepEqual([first?.id, first?.url, first?.at], [1, "https://a.example/a%20b", 0]);
  assert.match(first?.title ?? "", /^e vx{1,196}…$/);
  assert.equal(first?.quote?.length, 500);
  assert.deepEqual(others, [{ id: 2, title: "terms.pdf", file: "terms.pdf", at: 3 }]);
});

const PARTED: [string, NonNullable<ServerOptions["agent"]>, string[]][] = [
  ["that is shown", { tools: [define("search", () => "found")] }, ["Let me see⟦1⟧.", "It is so⟦1⟧. Yes⟦2⟧."]],
  [
    "that hides itself",
    { tools: [define("search", () => "found", { expose: "none" })] },
    ["Let me see⟦1⟧.\n\nIt is so⟦1⟧. Yes⟦2⟧."],
  ],
  [
    "where a hook holds the answer back",
    { tools: [define("search", () => "found")], onAnswer: () => {} },
    ["Let me see⟦1⟧.\n\nIt is so⟦1⟧. Yes⟦2⟧."],
  ],
];

for (const [which, agent, expected] of PARTED) {
  test(`places count since the last tool ${which}, and thinking parts nothing`, async (t) => {
    const turns = [
      [
        say("It was a thought."),
        source({ ...PAGE, back: 1 }),
        { type: "text_was_thinking" } as Step,
        say("Let me see."),
        source({ ...PAGE, back: 1 }),
        call("c1", "search"),
      ],
      [
        say("It is "),
        think("Hm."),
        say("so. Y"),
        source({ ...PAGE, back: 3 }),
        say("es."),
        source({ file: "b.pdf", back: 1 }),
      ],
    ];
    const server = await startServer(t, { turns, agent });
    const { events } = await send.sse(t, server, { message: "Hi" });
    const texts = readMarked(events.filter((event) => !(event.type === "source" && event.data.at === 16)));
    assert.deepEqual(texts.map(alike), expected.map(alike));
    assert.equal(alike(doneMarked(events)), alike("It is so⟦1⟧. Yes⟦2⟧."));
  });
}

const STEP = fc.oneof(
  fc.constantFrom("Ja", " 東京", "🚀 ", "| a |", "`c`").map(say),
  fc.constant(think("Hm.")),
  fc.record({ back: fc.nat(30), page: fc.nat(2) }),
);
const STEPS = fc.array(STEP, { maxLength: 8 });

test("whatever is said and thought, and whatever tools part it, each place stays behind the same words to the end", async (t) => {
  const kinds = ["all", "title", "none"] as const;
  const exchanges = fc.sample(fc.record({ first: STEPS, second: STEPS, kind: fc.constantFrom(...kinds) }), {
    numRuns: 200,
    seed: 62,
  });
  const turns: Step[][] = [];
  const expected = exchanges.map(({ first, second, kind }) => {
    const numbers = new Map<string, number>();
    const play = (steps: typeof first, turn: Step[]) => {
      let text = "";
      const marks: { id: number; at: number }[] = [];
      for (const step of steps) {
        if (!("page" in step)) {
          turn.push(step);
          if (step.type === "text") text += step.delta;
          continue;
        }
        // Sources without any text before them mark nothing.
        if (text === "") continue;
        const [back, url] = [Math.min(step.back, text.length), `https://a.example/${step.page}`];
        const id = numbers.get(url) ?? numbers.size + 1;
        numbers.set(url, id);
        turn.push(source({ url, back }));
        const at = text.length - back;
        if (!marks.some((one) => one.id === id && one.at === at)) marks.push({ id, at });
      }
      turns.push(turn);
      return withMarks(text, marks);
    };
    const begin = [say("Gut")];
    const [before, after] = [play(first, []), play([...begin, ...second], [])];
    turns.at(-2)?.push(call("c1", kind));
    const isHidden = kind === "none" && before !== "";
    const texts = isHidden ? [`${before}\n\n${after}`] : [before, after].filter((text) => text !== "");
    return { texts: texts.map(alike), done: alike(after) };
  });
  const tools = kinds.map((expose) => define(expose, () => "found", { expose, title: "Search" }));
  for (const agent of [{ tools }, { tools, onAnswer: () => {} }]) {
    const server = await startServer(t, { turns, agent });
    for (const { texts, done } of expected) {
      const { events } = await send.sse(t, server, { message: "Hi" });
      const [read, whole] = [readMarked(events).map(alike), texts.join("onAnswer" in agent ? "\n\n" : "⁂")];
      assert.equal(read.join("⁂"), whole);
      assert.equal(alike(doneMarked(events)), done);
    }
  }
});

test("a refused answer has no sources, a stopped or failed one those that were said", async (t) => {
  const turn = [say("It is so."), source({ ...PAGE, back: 0 })];
  const refusing = await startServer(t, { turns: [turn], agent: { onAnswer: () => ({ refuse: "No." }) } });
  const { events, last } = await send.sse(t, refusing, { message: "Hi" });
  assert.deepEqual([sourcesIn(events), last.type === "done" && last.sources], [[], undefined]);
  const failing = await startServer(t, { turns: [[...turn, fail(new Error("gone"))]] });
  const failed = await send.sse(t, failing, { message: "Hi" });
  assert.deepEqual([sourcesIn(failed.events).length, failed.last.type], [1, "error"]);
});

test("Claude gets a tool's sources as search results, cites them at their places, and the next request is built alike", async (t) => {
  for (const expose of ["all", "title", "none"] as const) {
    await using upstream = await startUpstream(
      { body: [fixture("anthropic/search-call")] },
      { body: [fixture("anthropic/search-results")] },
      { body: [fixture("anthropic/text")] },
    );
    const server = await startServer(t, {
      provider: claude(upstream, { model: "claude-sonnet-4-6" }),
      agent: { tools: [search(FOUND, { expose, title: "Searching" })] },
    });
    const { events, last } = await send.sse(t, server, { message: "When?" });
    const text = "Kurz 🚚: Lieferung in 東京 dauert 3 Tage⟦1⟧⟦2⟧. Retouren sind frei⟦1⟧.";
    const shown = expose === "all" ? text : text.replace(/⟦\d⟧/g, "");
    assert.deepEqual(readMarked(events).map(alike), [alike(shown)]);
    assert.deepEqual(
      sourcesIn(events).map(({ title, url, file, quote }) => [title, url ?? file, quote]),
      expose === "all"
        ? [
            ["Delivery", PAGE.url, "Three days to Tokyo."],
            ["Terms", "Terms", "3 days"],
            ["Delivery", PAGE.url, "Returns are free."],
          ]
        : [],
    );
    assert.equal(JSON.stringify(last.state).includes(PAGE.url), expose === "all");
    await send.json(t, server, { message: "Sure?", state: last.state });
    const [, second, third] = upstream.calls.map(({ json }) => json.messages);
    const results = FOUND.map(({ title, text: words, ...page }) => ({
      type: "search_result",
      source: "url" in page ? page.url : title,
      title,
      content: [{ type: "text", text: words }],
      citations: { enabled: true },
    }));
    assert.deepEqual(second[2].content[0].content, results);
    assert.deepEqual(third[2].content[0].content, results);
  }
});

const DOOR = { PARLEY_OPENAI_API: "on", PARLEY_MCP: "on", PARLEY_API_KEY: "key" };

test("doors have sources where their text has them", async (t) => {
  const turns = () => [
    [say(" Let me see."), source({ ...PAGE, back: 1 }), call("c1", "search")],
    [say("\n It is so. Yes"), source({ ...PAGE, back: 5 }), source({ file: "b.pdf", back: 0 }), say(".")],
  ];
  const options = { env: DOOR, agent: { tools: [search([{ title: "Whole", url: "https://a.example/" }])] } };
  const ask = async (path: string, body: object) => {
    const server = await startServer(t, { ...options, turns: turns() });
    const headers = { authorization: "Bearer key", "content-type": "application/json", accept: "application/json" };
    return (await fetch(server.url + path, { method: "POST", headers, body: JSON.stringify(body) })).text();
  };
  const at = (url: string, title: string, place: number) => ({
    type: "url_citation",
    url_citation: { url, title, start_index: place, end_index: place },
  });
  const content = " Let me see.\n\nIt is so. Yes.";
  const annotations = [
    at(PAGE.url, "Delivery", content.indexOf("see") + 3),
    at("https://a.example/", "Whole", 0),
    at(PAGE.url, "Delivery", content.indexOf(" so.") + 3),
  ];
  const messages = [{ role: "user", content: "Hi" }];
  const { message } = JSON.parse(await ask("/v1/chat/completions", { model: "m", messages })).choices[0];
  assert.deepEqual([message.content, message.annotations], [content, annotations]);
  const stream = await ask("/v1/chat/completions", { model: "m", messages, stream: true });
  const chunks = [...stream.matchAll(/^data: (\{.*)$/gm)].map(([, data = ""]) => JSON.parse(data));
  assert.equal(chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join(""), content);
  assert.deepEqual(chunks.at(-1).choices, [{ index: 0, delta: { annotations }, finish_reason: "stop" }]);
  const asked = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "ask", arguments: { message: "Hi" } } };
  const { structuredContent } = JSON.parse(await ask("/mcp", asked)).result;
  assert.equal(structuredContent.answer, "\n It is so. Yes.");
  assert.deepEqual(structuredContent.sources, [
    { id: 1, ...PAGE, at: [10] },
    { id: 2, title: "Whole", url: "https://a.example/", at: [] },
    { id: 3, title: "b.pdf", file: "b.pdf", at: [15] },
  ]);
});

const cited = { type: "url_citation", start_index: 0, end_index: 7, ...PAGE };
const content = (more: object) => [{ type: "output_text", text: "Grüß 👋. Ja", ...more }];
const ELSEWHERE: [string, object[], string][] = [
  [
    "events of ours, whose places count since the last call",
    [
      { type: "token", data: "See: " },
      { type: "tool_call", data: { id: "1", tool: "look" } },
      { type: "tool_result", data: { id: "1", output: "" } },
      { type: "token", data: "Grüß 👋. Ja" },
      { type: "source", data: { ...PAGE, at: 7 } },
    ],
    "See: |Grüß 👋⟦1⟧. Ja",
  ],
  [
    "the parts of the AI SDK",
    [
      { type: "text-delta", id: "0", text: "Ja【4:0†s】" },
      { type: "source", sourceType: "url", id: "s1", ...PAGE },
      { type: "finish", finishReason: "stop", totalUsage: {} },
    ],
    "Ja",
  ],
  [
    "the chunks of a UI message stream",
    [
      { type: "text-delta", id: "0", delta: "Ja" },
      { type: "source-url", sourceId: "s1", ...PAGE },
    ],
    "Ja",
  ],
  [
    "Mastra",
    [
      { type: "text-delta", runId: "r", from: "AGENT", payload: { id: "0", text: "Ja" } },
      { type: "source", runId: "r", from: "AGENT", payload: { id: "s1", sourceType: "url", ...PAGE } },
    ],
    "Ja",
  ],
  [
    "the OpenAI Agents SDK",
    [
      { type: "raw_model_stream_event", data: { type: "response_started" } },
      { type: "raw_model_stream_event", data: { type: "output_text_delta", delta: "Grüß 👋. Ja" } },
      {
        type: "run_item_stream_event",
        name: "message_output_created",
        item: { rawItem: { type: "message", content: content({ providerData: { annotations: [cited] } }) } },
      },
    ],
    "Grüß 👋.⟦1⟧ Ja",
  ],
  [
    "LangGraph, with what Claude cites",
    [
      [
        "messages",
        [
          {
            type: "AIMessageChunk",
            id: "m1",
            content: [
              { type: "text", text: "Ja" },
              { type: "text", text: "", citations: [{ type: "web_search_result_location", cited_text: "q", ...PAGE }] },
            ],
          },
          {},
        ],
      ],
    ],
    "Ja",
  ],
];

for (const [what, items, expected] of ELSEWHERE) {
  test(`agents elsewhere: ${what}`, async (t) => {
    async function* run() {
      yield* items as never[];
    }
    const server = await startServer(t, { agent: { model: undefined, run } as never });
    const { events } = await send.sse(t, server, { message: "Hi" });
    assert.equal(readMarked(events).join("|"), expected, JSON.stringify(events));
    const [{ id, title, url } = assert.fail(JSON.stringify(events))] = sourcesIn(events);
    assert.deepEqual({ id, title, url }, { id: 1, ...PAGE });
  });
}

test("agents elsewhere: a server with the Responses API", async (t) => {
  await using upstream = await startUpstream({ body: [fixture("responses/places")] });
  const server = await startServer(t, { agent: { model: undefined, run: responses(upstream.url) } as never });
  const { events } = await send.sse(t, server, { message: "Hi" });
  const [, , expected = ""] = WIRES[0] ?? [];
  assert.deepEqual(readMarked(events).map(alike), [alike(expected)]);
});

test("states that hide a tool's sources are opened again for the model", async (t) => {
  const turns = [[call("c1", "search")], [say("Yes.")], [say("Still.")]];
  const server = await startServer(t, { turns, agent: { tools: [search(FOUND, { expose: "none" })] } });
  const { last, events } = await send.sse(t, server, { message: "Hi" });
  assert.deepEqual(sourcesIn(events), []);
  const { conversation_history: history = [] } = last.state as ConversationState;
  assert.ok(!JSON.stringify(history).includes("Tokyo"));
  await send.json(t, server, { message: "Hi", state: last.state });
  const sent = server.model.asked.at(-1)?.messages as HistoryMessage[];
  assert.deepEqual(
    sent.flatMap((one) => ("sources" in one ? one.sources : [])),
    FOUND,
  );
});
