/** States issued by earlier builds (`test/fixtures/stored`): this build can continue each. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { type TestContext, test } from "node:test";
import type { RunInput } from "../../server/agent/run-function.ts";
import type { WaitingCalls } from "../../server/protocol/chat.ts";
import { authenticate, SECRET, SERVED, type StoredState, withTools } from "../fixtures/stored/agents.ts";
import { stream as bedrockStream } from "../support/bedrock.ts";
import { changesOf } from "../support/changes.ts";
import { post } from "../support/chat-transports.ts";
import { type ServerOptions, startServer } from "../support/start-server.ts";
import { CHAT_COMPLETIONS, RESPONSES } from "../support/upstream-replies.ts";
import { fixture, startUpstream, type UpstreamReply } from "../support/upstream-server.ts";

const lines = readFileSync(new URL("../fixtures/stored/states.jsonl", import.meta.url), "utf8")
  .trim()
  .split("\n");
const STORED: StoredState[] = lines.map((line) => JSON.parse(line));

const ANSWERS: Record<string, UpstreamReply> = {
  chat: CHAT_COMPLETIONS.text("Noted."),
  responses: RESPONSES.text("Noted.", "resp_9"),
  unstored: RESPONSES.text("Noted."),
  anthropic: { body: [fixture("anthropic/text")] },
  gemini: { body: [fixture("gemini/text")] },
  bedrock: bedrockStream("text"),
};

/** An agent like the one that issued the state; records the requests to its model or to its own `run`. */
async function serve(t: TestContext, { served, isSigned }: StoredState, options: ServerOptions = {}) {
  const asked: unknown[] = [];
  const answer = ANSWERS[served.replace(", hidden", "")];
  const upstream = await startUpstream(...(answer === undefined ? [] : Array(5).fill(answer)));
  t.after(() => upstream.close());
  const own: Record<string, ServerOptions> = {
    run: { agent: { model: undefined, run: (input: RunInput) => `Noted ${asked.push(input)}.` } as never },
    "ai-sdk": withTools({ model: modelObject(asked) }),
  };
  const { env, ...rest } = own[served] ?? SERVED[served]?.(upstream.url) ?? assert.fail(served);
  const signed = isSigned ? { PARLEY_STATE_SECRET: SECRET } : {};
  const server = await startServer(t, { ...rest, ...options, env: { ...env, ...signed } });
  const ask = async (body: object, user?: string) => {
    const headers: Record<string, string> = user === undefined ? {} : { "x-user-token": user };
    const reply = await post(server, { ...body, stream: false }, { headers });
    const text = await reply.text();
    const { state, error } = JSON.parse(text);
    return { status: reply.status, text, state, code: error?.code };
  };
  return { ask, lastAsked: () => asked.at(-1) ?? upstream.calls.at(-1)?.json };
}

/** An AI SDK model of the same provider as in the stored state. */
function modelObject(asked: unknown[]) {
  const parts = [
    { type: "text-start", id: "1" },
    { type: "text-delta", id: "1", delta: "Noted." },
    { type: "text-end", id: "1" },
    { type: "finish", finishReason: { unified: "stop" }, usage: { inputTokens: {}, outputTokens: {} } },
  ];
  const doStream = async ({ prompt }: { prompt: unknown }) => {
    asked.push(prompt);
    const start = (controller: ReadableStreamDefaultController) => {
      for (const part of parts) controller.enqueue(part);
      controller.close();
    };
    return { stream: new ReadableStream({ start }) };
  };
  return {
    specificationVersion: "v3",
    provider: "anthropic.messages",
    modelId: "claude-sonnet-4-5",
    doStream,
  } as const;
}

/** The `kept` values of a hosted agent's calls, in order. */
const keptOf = ({ calls, kept }: WaitingCalls) => calls.map((call) => call.kept ?? kept);

/** Asserts that the texts occur in the request, in this order. */
function assertSees(asked: unknown, sees: readonly string[]): void {
  let rest = JSON.stringify(asked).replaceAll("\\", "");
  for (const text of sees) {
    const at = rest.indexOf(text);
    assert.notEqual(at, -1, `${text} in ${rest}`);
    rest = rest.slice(at);
  }
}

for (const stored of STORED) {
  const { name, user, state, goesOn, waiting, sees, hides } = stored;
  const users = user === undefined ? {} : { authenticate };

  test(`a state of an earlier build goes on, and so does what comes of it: ${name}`, async (t) => {
    const { ask, lastAsked } = await serve(t, stored, users);
    const bodies = [{ message: "And now?", state }, ...(goesOn ? [{ continue: true, state }] : [])];
    if (waiting !== undefined) {
      const approvals = waiting.map((id) => ({ id, approved: true }));
      const late = await ask({ approvals, state }, user);
      assert.deepEqual([late.status, late.code], [409, "approval_expired"]);
      if (stored.served === "run") {
        // An earlier build stored the agent's `kept` in clear text; this build seals it.
        assert.deepEqual([JSON.stringify(state.open).includes("kept"), late.text.includes("kept")], [true, false]);
        bodies.push({ message: "And now?", state: late.state });
      }
    }
    for (const body of bodies) {
      const next = await ask(body, user);
      assert.equal(next.status, 200, next.text);
      assertSees(lastAsked(), sees);
      if ("message" in body) assertSees(lastAsked(), ["And now?"]);
      const { waiting: calls } = state.open ?? {};
      if (stored.served === "run" && calls !== undefined) {
        const { approvals } = (lastAsked() as RunInput).ctx;
        assert.deepEqual(
          approvals.map(({ approved, kept }) => [approved, kept]),
          keptOf(calls).map((kept) => [false, kept]),
        );
      }
      if (hides !== undefined) assert.ok(!next.text.includes(hides));
      const last = await ask({ message: "Thanks", state: next.state }, user);
      assert.equal(last.status, 200, last.text);
      if (hides !== undefined) assert.ok(!last.text.includes(hides));
    }
  });
}

/** One variant per field, with a changed value. */
const withChangedFields = (it: object): object[] =>
  Object.entries(it).flatMap(([key, value]) => [...changesOf(value)].slice(-1).map((one) => ({ ...it, [key]: one })));

test("a signed state of an earlier build is refused with any of its fields changed, and to other users", async (t) => {
  for (const stored of STORED.filter(({ isSigned }) => isSigned)) {
    const { ask } = await serve(t, stored, { authenticate });
    const { user, state, name } = stored;
    const { open } = state;
    const refused = async (one: unknown, who = user) => {
      const { status, code } = await ask({ message: "And now?", state: one }, who);
      assert.deepEqual([status, code], [400, "invalid_state"], `${name}: ${JSON.stringify(one)}`);
    };
    const forged = [
      ...withChangedFields(state),
      ...withChangedFields(open ?? {}).map((one) => ({ ...state, open: one })),
    ];
    await Promise.all(forged.map((one) => refused(one)));
    if (user !== undefined) await refused(state, "eve");
    // A conversation without an owner belongs to the user who continues it.
    else assert.equal((await ask({ message: "And now?", state }, "eve")).status, 200);
  }
});
