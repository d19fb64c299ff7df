/** Any message of a client is either a valid request or an error that names the problem; never a bug. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import fc from "fast-check";
import { readState, type StateBinding, sealState } from "../../server/agent/state.ts";
import { readSettings, SETTINGS } from "../../server/config/settings.ts";
import { parseChatCompletion } from "../../server/doors/openai-messages.ts";
import { ConfigError } from "../../server/errors.ts";
import { MemoryBudget, type MessageMemory } from "../../server/limits/memory-budget.ts";
import { ALL_MEDIA_TYPES } from "../../server/protocol/attachments.ts";
import type { HistoryMessage } from "../../server/protocol/chat.ts";
import { ApiError } from "../../server/protocol/errors.ts";
import type { SocketEvent } from "../../server/protocol/events.ts";
import type { MessageRules } from "../../server/routes/message.ts";
import { parseJson } from "../../server/routes/parse-json.ts";
import { parseChatRequest, parseSocketMessage } from "../../server/routes/parse-message.ts";
import { newRun } from "../support/run-lines.ts";
import { say, type Turn, wait } from "../support/scripted-provider.ts";
import { connect, type SocketClient } from "../support/socket-client.ts";
import { type Cleanup, startServer, type TestServer } from "../support/start-server.ts";
import { binding, isJudged, MAX_JSON_DEPTH } from "./judged.ts";

const rules = (more: Partial<StateBinding>): MessageRules => ({
  state: { ...binding, ...more },
  attachments: { maxCount: 3, accepts: ALL_MEDIA_TYPES },
  maxMessageChars: 1000,
  maxJsonDepth: MAX_JSON_DEPTH,
  asksModel: true,
});
const RULES = [
  rules({ secrets: [] }),
  rules({}),
  rules({ kind: "previous_response_id" }),
  rules({ kind: "previous_response_id", secrets: [] }),
];

/** Strings with a meaning somewhere, and any others. */
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

/** JSON built from words that the parsers know, so that it gets far into them. */
const { value: near } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 6, depthSize: "small" },
    word,
    fc.constantFrom(null, true, false, 0, -1, 1.5, 1e308),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(fc.constantFrom(...KEYS), tie("value"), { maxKeys: 6 }),
  ),
}));
/** A message whose fields mostly have the right type. */
const message = fc.record(
  {
    message: fc.oneof({ weight: 4, arbitrary: word }, near),
    stream: fc.oneof({ weight: 4, arbitrary: fc.boolean() }, near),
    type: fc.option(word, { nil: undefined }),
    state: near,
    attachments: fc.oneof(
      near,
      fc.array(fc.record({ type: word, name: word, mime_type: word, data: fc.oneof(word, fc.base64String()) })),
    ),
    run: near,
    after: near,
    previous_response_id: near,
  },
  { requiredKeys: [] },
);
const body = fc.oneof({ weight: 4, arbitrary: message }, near, fc.jsonValue());

/** Whether strict UTF-8 and `JSON.parse` accept it. */
function isJson(bytes: Uint8Array): boolean {
  try {
    JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    return true;
  } catch {
    return false;
  }
}

test("any bytes are read as JSON.parse reads them, or are invalid_json", () => {
  const damaged = fc.tuple(fc.json(), fc.nat(), fc.nat({ max: 255 })).map(([json, place, byte]) => {
    const bytes = Buffer.from(json);
    bytes[place % bytes.length] = byte;
    return bytes;
  });
  const bytes = fc.oneof({ weight: 3, arbitrary: damaged }, { weight: 1, arbitrary: fc.uint8Array({ maxLength: 40 }) });
  fc.assert(
    fc.property(bytes, (some) =>
      assert.equal(
        isJudged(() => parseJson(some, 1000)),
        isJson(some),
      ),
    ),
    { numRuns: 600 },
  );
});

/** Depth of nested arrays and objects. */
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
      isJudged(() => parseSocketMessage(parsed(), rule, {}));
    }),
    { numRuns: 1500 },
  );
  assert.equal(Object.keys(Object.prototype).length, 0);
});

/** A conversation whose fields mostly have the right type. */
const conversation = fc.record(
  {
    messages: fc.array(
      fc.oneof(
        {
          weight: 4,
          arbitrary: fc.record({ role: fc.oneof(fc.constantFrom("user", "assistant", "tool"), word), content: near }),
        },
        near,
      ),
      { minLength: 1, maxLength: 5 },
    ),
    stream: fc.oneof({ weight: 4, arbitrary: fc.boolean() }, near),
    ...{ metadata: near, n: near, modalities: near, stream_options: near },
  },
  { requiredKeys: ["messages"] },
);

test("any body of Chat Completions is a conversation of texts and files of user and assistant, or a 4xx in words", () => {
  fc.assert(
    fc.property(fc.oneof({ weight: 4, arbitrary: conversation }, near, fc.jsonValue()), (value) => {
      const parsed = parseJson(Buffer.from(JSON.stringify(value)), MAX_JSON_DEPTH);
      isJudged(() => {
        const { request } = parseChatCompletion(parsed, { ...rules({}), name: "a-name" });
        assert.ok(request.message.isWellFormed() && (request.message.trim() !== "" || request.attachments.length > 0));
        for (const { role, content, ...more } of request.history ?? []) {
          assert.deepEqual([role === "user" || role === "assistant", more], [true, {}]);
          assert.ok(content !== null && content.length > 0);
        }
      });
    }),
    { numRuns: 1500 },
  );
});

test("a file is taken as it is, and not with any one character that is not base64", () => {
  const png = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex");
  const [rule] = RULES;
  assert.ok(rule);
  const parse = (data: string) =>
    parseChatRequest(
      { message: "", stream: false, attachments: [{ type: "image", name: "a", mime_type: "image/png", data }] },
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

// A client with random actions against a real server: what every reader of a WebSocket may rely on.

const SEQUENCES = 40;
const ACTIONS = ["send", "send", "stop", "clear", "resume", "read", "read", "cut"] as const;
type Action = (typeof ACTIONS)[number];

/** Errors for commands that do not fit; a run continues despite them. */
const ANSWERS = ["run_in_progress", "invalid_request", "run_not_found", "run_expired"];

/** A short answer, during which the process does other work. */
function* action(): Generator<Turn extends Iterable<infer Step> ? Step : never, void> {
  for (let word = 0; word < 6; word++) {
    yield say(`${word} `);
    yield wait(nextTurn());
  }
}

/** One client on successive connections. Checks each event against the earlier ones. */
class Client {
  readonly #t: Cleanup;
  readonly #server: TestServer;
  #line: SocketClient | undefined;
  /** Id of the newest event, and whether it was the last of its run. */
  #last = 0;
  #isOver = true;
  /** The run that was named last. */
  #run = newRun();
  /** Event ids after which a resumed run may continue. */
  readonly #resumed = new Set<number>();

  constructor(t: Cleanup, server: TestServer) {
    this.#t = t;
    this.#server = server;
  }

  async act(action: Action): Promise<void> {
    this.#line ??= await connect(this.#t, this.#server.socketUrl);
    switch (action) {
      case "send":
        this.#run = newRun();
        return this.#line.send({ message: "Hi", run: this.#run });
      case "stop":
        return this.#line.send({ type: "stop" });
      case "clear":
        return this.#line.send({ type: "clear" });
      case "resume":
        this.#resumed.add(this.#last + 1);
        return this.#line.send({ type: "resume", run: this.#run, after: this.#last });
      case "read":
        for (let round = 0; round < 4; round++) await nextTurn();
        return this.#readArrived();
      case "cut":
        this.#readArrived();
        this.#line.socket.terminate();
        this.#line = undefined;
        // The new connection begins without a run, or in the middle of a resumed one.
        this.#isOver = true;
    }
  }

  /** Ends any run, and asserts that the socket still works. */
  async finish(): Promise<void> {
    await this.act("clear");
    const line = this.#line;
    assert.ok(line);
    // Earlier messages are answered before this one, which is invalid JSON.
    line.socket.send("{");
    for (;;) {
      const event = await line.next();
      if (event.type === "error" && event.code === "invalid_json") break;
      this.#judge(event);
    }
    const events = await line.run({ message: "Hi" });
    const told = events.filter((event) => "id" in event);
    assert.deepEqual(
      told.map((event) => event.id),
      [1, 2, 3, 4, 5, 6, 7],
    );
    assert.equal(told.at(-1)?.type, "done");
    line.socket.terminate();
  }

  #readArrived(): void {
    const line = this.#line;
    // Received events are taken without waiting, and checked in order.
    for (const event of line?.takeArrived() ?? []) this.#judge(event);
  }

  #judge(event: SocketEvent): void {
    if (event.type === "cleared") {
      this.#isOver = true;
      return;
    }
    if (!("id" in event)) {
      assert.ok(event.type === "error" && ANSWERS.includes(event.code), JSON.stringify(event));
      return;
    }
    const id = event.id as number;
    const goesOn = !this.#isOver && id === this.#last + 1;
    const begins = this.#isOver && (id === 1 || this.#resumed.has(id));
    assert.ok(goesOn || begins, `event ${id} after ${this.#last}, run over: ${this.#isOver}`);
    this.#last = id;
    this.#isOver = event.type === "done" || event.type === "error";
  }
}

test("whatever a client does, a run's events have no gap, one end, and one run is answered at a time", async (t) => {
  const turns = Array.from({ length: SEQUENCES * 60 }, action);
  const env = {
    PARLEY_RATE_PER_ADDRESS: "0",
    PARLEY_RATE_PER_SOCKET: "0",
    PARLEY_MAX_RUNS_PER_ADDRESS: "0",
    PARLEY_RESUME_SECONDS: "1",
  };
  const server = await startServer(t, { turns, env });
  await fc.assert(
    fc.asyncProperty(fc.array(fc.constantFrom(...ACTIONS), { maxLength: 14 }), async (actions) => {
      const client = new Client(t, server);
      for (const action of actions) await client.act(action);
      await client.finish();
    }),
    { numRuns: SEQUENCES, interruptAfterTimeLimit: 60_000, markInterruptAsFailure: true },
  );
  assert.doesNotMatch(server.log.join("\n"), /internal|Error:/);
});

// Any environment gives settings, or a sentence that names the mistake.

const NAMES = Object.values(SETTINGS).map(({ name }) => name);

test("any environment is settings or a sentence that names the variable", () => {
  const value = fc.oneof(
    fc.constantFrom("", " ", ",", "*", "0", "-1", "1e9", "0x10", "NaN", "8080", "https://a.example", "10.0.0.0/8"),
    fc.string(),
  );
  const property = fc.property(fc.dictionary(fc.constantFrom(...NAMES), value, { maxKeys: 3 }), (env) => {
    try {
      const { port } = readSettings(env);
      assert.ok(Number.isInteger(port) && port >= 0 && port < 65_536);
    } catch (error) {
      assert.ok(error instanceof ConfigError, String(error));
      assert.ok(
        Object.keys(env).some((name) => error.message.includes(name)),
        error.message,
      );
    }
  });
  fc.assert(property, { numRuns: 1000 });
});

// A conversation stored by a client is accepted unchanged, or rejected.

const turn = fc
  .tuple(
    fc.string(),
    fc.array(fc.tuple(fc.string(), fc.json(), fc.string()), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom("thinking_blocks", "reasoning"), fc.jsonValue()),
  )
  .map(([said, calls, extra]): HistoryMessage[] => [
    { role: "user", content: said },
    {
      ...extra,
      role: "assistant",
      content: said,
      tool_calls: calls.map(([name, args], index) => ({
        id: `c${index}`,
        type: "function",
        function: { name, arguments: args },
      })),
    },
    ...calls.map(([, , content], index): HistoryMessage => ({ role: "tool", tool_call_id: `c${index}`, content })),
  ]);
const history = fc.array(turn, { minLength: 1, maxLength: 4 }).map((turns) => turns.flat());

/** A value as a client may have stored it. */
const stored = (value: unknown): unknown => JSON.parse(JSON.stringify(value, sortKeys));
const sortKeys = (_key: string, value: unknown) =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? 1 : -1)))
    : value;

test("any conversation comes back from a client as it was sealed, and no other way", () => {
  fc.assert(
    fc.property(history, fc.nat(), (messages, place) => {
      const conversation = "a-conversation-of-a-test";
      const sealed = sealState({ conversation_history: messages }, conversation, binding);
      const back = readState(stored(sealed), binding);
      assert.deepEqual(stored(back), stored({ conversation_history: messages, conversation }));

      const altered = structuredClone(sealed) as { conversation_history: { content: unknown }[] };
      const target = altered.conversation_history[place % messages.length];
      assert.ok(target);
      target.content = `${target.content}.`;
      assert.equal(
        isJudged(() => readState(altered, binding)),
        false,
      );
      assert.equal(
        isJudged(() => readState(sealed, { ...binding, agent: "Other" })),
        false,
      );
    }),
    { numRuns: 150 },
  );
});

// Random actions of messages and sockets: the budget is never exceeded, and all memory is released.

const MAX = 1_000_000;

/** Size up to which parts of messages are not counted. */
const FREE = 64 * 1024;

const bytes = fc.integer({ min: 1, max: MAX });
const which = fc.nat({ max: 19 });
const step = fc.oneof(
  fc.record({ do: fc.constant("begin" as const) }),
  fc.record({ do: fc.constant("grow" as const), which, bytes }),
  fc.record({ do: fc.constant("share" as const), which }),
  fc.record({ do: fc.constant("end" as const), which }),
  fc.record({ do: fc.constant("remember" as const), bytes }),
  fc.record({ do: fc.constant("forget" as const), which }),
);

interface Message {
  memory: MessageMemory;
  releases: (() => void)[];
  size: number;
}

interface Droppable {
  bytes: number;
  release: () => void;
  dropped: number;
}

test("messages and remembered states never take more than the budget, the oldest state goes first, and all of it is given back", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const budget = new MemoryBudget(MAX);
      const messages: Message[] = [];
      const droppable: Droppable[] = [];
      const counted = () =>
        messages.reduce((sum, { size, releases }) => {
          return sum + (size > FREE && releases.length > 0 ? size : 0);
        }, 0);
      const pick = <One>(from: One[], at: number) => from[at % Math.max(from.length, 1)];
      for (const one of steps) {
        if (one.do === "begin") {
          const memory = budget.openMessage();
          messages.push({ memory, releases: [memory.share()], size: 0 });
        } else if (one.do === "grow") {
          const message = pick(messages, one.which);
          if (message === undefined || message.releases.length === 0) continue;
          const others = counted() - (message.size > FREE ? message.size : 0);
          const next = message.size + one.bytes;
          const fits = next <= FREE || others + next <= MAX;
          try {
            message.memory.growTo(next);
            assert.ok(fits, "refused when there is no room for all messages");
            message.size = next;
          } catch (error) {
            assert.ok(error instanceof ApiError && error.code === "overloaded");
            assert.ok(!fits, "never refused for what is only remembered");
          }
        } else if (one.do === "share") {
          const message = pick(messages, one.which);
          if (message && message.releases.length > 0) message.releases.push(message.memory.share());
        } else if (one.do === "end") {
          pick(messages, one.which)?.releases.pop()?.();
        } else if (one.do === "remember") {
          const remembered: Droppable = { bytes: one.bytes, release: () => {}, dropped: 0 };
          const release = budget.addDroppable(one.bytes, () => remembered.dropped++);
          assert.equal(release !== undefined, counted() + one.bytes <= MAX);
          if (release === undefined) continue;
          remembered.release = release;
          droppable.push(remembered);
        } else {
          const at = one.which % Math.max(droppable.length, 1);
          for (const { release } of droppable.splice(at, 1)) release();
        }
        const left = droppable.filter(({ dropped }) => dropped === 0);
        assert.ok(budget.usedBytes <= MAX);
        assert.equal(budget.usedBytes, counted() + left.reduce((sum, { bytes: size }) => sum + size, 0));
        assert.ok(droppable.every(({ dropped }) => dropped <= 1));
        assert.deepEqual(left, droppable.slice(droppable.length - left.length), "the oldest went first");
      }
      for (const { releases } of messages) for (const release of releases) release();
      for (const { release } of droppable) release();
      assert.equal(budget.usedBytes, 0);
    }),
  );
});
