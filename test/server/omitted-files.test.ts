/** Clients may keep a conversation without its files, and send the `omitted` field of a file without its data. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { type TestContext, test } from "node:test";
import fc from "fast-check";
import { readState, sealState } from "../../server/agent/state.ts";
import type { ConversationState, HistoryMessage } from "../../server/protocol/chat.ts";
import { ApiError } from "../../server/protocol/errors.ts";
import { isRecord } from "../../server/protocol/json.ts";
import { authenticate, SERVED } from "../fixtures/stored/agents.ts";
import { binding } from "../fuzz/judged.ts";
import { stream as bedrockStream } from "../support/bedrock.ts";
import { post, send } from "../support/chat-transports.ts";
import { attachment } from "../support/files.ts";
import { newRun } from "../support/run-lines.ts";
import { call, hang, say, type Turn } from "../support/scripted-provider.ts";
import { connect } from "../support/socket-client.ts";
import { type ServerOptions, startServer } from "../support/start-server.ts";
import { CHAT_COMPLETIONS, RESPONSES } from "../support/upstream-replies.ts";
import { fixture, startUpstream, type UpstreamReply } from "../support/upstream-server.ts";

const PNG = attachment("image/png");
const PDF = attachment("application/pdf");
const SIGNED = { PARLEY_STATE_SECRET: "a secret" };

/** Removes the data of files from a state, as a client may do. */
function omit<State>(state: State, isOmitted: () => boolean = () => true): State {
  const text = JSON.stringify(state, (_key, value) => {
    const isFile = isRecord(value) && (value.type === "image_url" || value.type === "file");
    return isFile && isOmitted() ? { type: "omitted", omitted: value.omitted } : value;
  });
  return JSON.parse(text);
}

const textOf = (value: unknown) => JSON.stringify(value).replaceAll("\\", "");

/** Starts a server whose model plays `turns` and then answers "Fine" to twelve more messages. */
async function start(t: TestContext, options: ServerOptions = {}, turns: Turn[] = []) {
  const more = Array.from({ length: 12 }, () => [say("Fine")]);
  return startServer(t, { turns: [...turns, ...more], env: SIGNED, ...options });
}

const APIS: [served: string, reply: UpstreamReply][] = [
  ["chat", CHAT_COMPLETIONS.text("Seen.")],
  ["unstored", RESPONSES.text("Seen.")],
  ["anthropic", { body: [fixture("anthropic/text")] }],
  ["gemini", { body: [fixture("gemini/text")] }],
  ["bedrock", bedrockStream("text")],
];

for (const [served, reply] of APIS) {
  test(`${served}: a model is told of files that were omitted, and gets whole ones as before`, async (t) => {
    const upstream = await startUpstream(...Array(4).fill(reply));
    t.after(() => upstream.close());
    const { env, ...options } = SERVED[served]?.(upstream.url) ?? assert.fail();
    const server = await startServer(t, { ...options, env: { ...env, ...SIGNED } });
    const asked = () => textOf(upstream.calls.at(-1)?.json);
    const attachments = [PNG, PDF];
    const { state } = (await send.json(t, server, { message: "My name is Bob.", attachments })).last;
    assert.ok(state);
    const whole = await send.json(t, server, { message: "Who am I?", state });
    assert.ok(asked().includes(String(PNG.data)) && asked().includes(String(PDF.data)), asked());
    assert.doesNotMatch(asked(), /omitted|sha256/);

    // The next state is signed, too, and keeps files omitted; the model still gets all earlier text.
    for (const given of [omit(state), omit(whole.last.state)]) {
      const { last } = await send.json(t, server, { message: "Who am I?", state: given });
      assert.equal(last.type, "done", last.data);
      assert.match(
        asked(),
        /My name is Bob\..*\[an image \(PNG, 1 kB\) was attached here earlier and is no longer included\].*\[offer\.pdf \(PDF, 1 kB\) was attached here earlier and is no longer included\].*Who am I\?/,
      );
      assert.ok(!asked().includes(String(PNG.data)) && !asked().includes(String(PDF.data)));
      assert.doesNotMatch(asked(), /omitted|sha256/);
      assert.deepEqual(omit(last.state), last.state);
    }
  });
}

test("beside the data of a file stands what is left of it without", async (t) => {
  const server = await start(t, { env: {} });
  const { state } = (await send.json(t, server, { message: "", attachments: [PNG, PDF] })).last;
  const parts = [PNG, PDF].map(({ data, mime_type }) => {
    const bytes = Buffer.from(String(data), "base64");
    const sha256 = createHash("sha256").update(bytes).digest("base64url");
    return { sha256, mime_type, bytes: bytes.length };
  });
  const [image, file] = (state?.conversation_history?.[0]?.content ?? []) as { omitted: unknown }[];
  assert.deepEqual([image?.omitted, file?.omitted], [parts[0], { ...parts[1], name: "offer.pdf" }]);
});

/** Forgeries of a state with an image before a PDF, both omitted. */
const FORGERIES: [name: string, forge: (text: string) => string][] = [
  ["another digest", (text) => text.replace(/"sha256":"./, '"sha256":"_')],
  ["another size", (text) => text.replace('"bytes":8', '"bytes":7')],
  ["another name", (text) => text.replace("offer.pdf", "other.pdf")],
  ["no name", (text) => text.replace(',"name":"offer.pdf"', "")],
  ["a name for an image", (text) => text.replace('"bytes":8', '"bytes":8,"name":"x"')],
  ["another media type", (text) => text.replace('"mime_type":"image/png"', '"mime_type":"image/gif"')],
  ["a field more", (text) => text.replace('"bytes":8', '"bytes":8,"more":1')],
  ["a field beside it", (text) => text.replace('{"type":"omitted"', '{"more":1,"type":"omitted"')],
  ["a text in its place", (text) => text.replace(/\{"type":"omitted",.*?\}\}/, '{"type":"text","text":"x"}')],
  [
    "two that are swapped",
    (text) => text.replace(/(\{"type":"omitted",.*?\}\}),(\{"type":"omitted",.*?\}\})/, "$2,$1"),
  ],
];

test("a signed state is refused with anything but a file and what stands beside it in its place", async (t) => {
  const server = await start(t);
  const { state } = (await send.json(t, server, { message: "Look", attachments: [PNG, PDF] })).last;
  const judge = async (text: string) => {
    const { last } = await send.json(t, server, { message: "Hi", state: JSON.parse(text) });
    return last.type === "error" ? last.code : last.type;
  };
  const slim = JSON.stringify(omit(state));
  for (const [name, forge] of FORGERIES) {
    assert.notEqual(forge(slim), slim, name);
    assert.equal(await judge(forge(slim)), "invalid_state", name);
  }
  const text = JSON.stringify(state);
  const png = String(PNG.data);
  for (const other of ["iVBORw0KGgs=", `${png} `, `${png}=`, png.slice(0, -1), "iVBORw0KGgp=", "", `${png}AAAA`]) {
    assert.equal(await judge(text.replace(`${png}"`, `${other}"`)), "invalid_state", other);
  }
  assert.equal(await judge(text.replace("image/png;", "image/gif;")), "invalid_state");
  assert.equal(await judge(text.replace('{"type":"file"', '{"file_id":"f","type":"file"')), "invalid_state");
  assert.equal(
    await judge(text.replace('"file_data"', '"file_url":"https://evil.example","file_data"')),
    "invalid_state",
  );
  // The digest beside a file's data is not checked, because it proves nothing.
  for (const lie of [(it: string) => it.replace(/"sha256":"./g, '"sha256":"_'), withoutDigests]) {
    assert.notEqual(lie(text), text);
    assert.equal(await judge(lie(text)), "done");
    const { state: next } = (await send.json(t, server, { message: "Hi", state: JSON.parse(lie(text)) })).last;
    assert.deepEqual(next?.conversation_history?.[0], state?.conversation_history?.[0]);
  }
});

const withoutDigests = (text: string) => text.replace(/,"omitted":\{.*?\}/g, "");

const OMITTED = { sha256: "A".repeat(43), mime_type: "image/png", bytes: 8 };
const MALFORMED: [field: string, omitted: unknown][] = [
  ["", "x"],
  ["", undefined],
  ["/sha256", { ...OMITTED, sha256: `${OMITTED.sha256}A` }],
  ["/sha256", { ...OMITTED, sha256: "A".repeat(42).concat("+") }],
  ["/mime_type", { ...OMITTED, mime_type: "text/html" }],
  ["/mime_type", { ...OMITTED, mime_type: "constructor" }],
  ["/bytes", { ...OMITTED, bytes: 1.5 }],
  ["/bytes", { ...OMITTED, bytes: -1 }],
  ["/bytes", { ...OMITTED, bytes: "8" }],
  ["/bytes", { ...OMITTED, bytes: 20 * 1024 * 1024 + 1 }],
  ["/name", { ...OMITTED, name: 5 }],
  ["/name", { ...OMITTED, name: "x".repeat(1001) }],
];

test("an unsigned state takes omitted files, and one that is malformed is refused by its field", async (t) => {
  const server = await start(t, { env: {} });
  const stateOf = (omitted: unknown) => ({
    conversation_history: [{ role: "user", content: [{ type: "omitted", omitted }] }],
  });
  for (const [field, omitted] of MALFORMED) {
    const answer = await post(server, { message: "Hi", stream: false, state: stateOf(omitted) });
    const { error } = JSON.parse(await answer.text());
    const param = `/state/conversation_history/0/content/0/omitted${field}`;
    assert.deepEqual([answer.status, error.code, error.param], [400, "invalid_state", param]);
  }
  const { last } = await send.json(t, server, { message: "Hi", state: stateOf({ ...OMITTED, more: 1 }) });
  assert.deepEqual(last.state?.conversation_history?.[0], stateOf(OMITTED).conversation_history[0]);
});

test("a user's state without its files is theirs alone, over each transport", async (t) => {
  const server = await start(t, { authenticate });
  const ask = async (token: string, body: object) => {
    const headers = { "x-user-token": token };
    const answer = await post(server, { message: "Hi", stream: false, ...body }, { headers });
    return { status: answer.status, state: JSON.parse(await answer.text()).state as ConversationState };
  };
  const first = await ask("ada", { attachments: [PNG] });
  const state = omit(first.state);
  assert.deepEqual([(await ask("bob", { state })).status, (await ask("ada", { state })).status], [400, 200]);
  const client = await connect(t, server.socketUrl);
  client.send({ type: "authenticate", token: "ada" });
  assert.equal((await client.run({ message: "Hi", state })).at(-1)?.type, "done");
  assert.deepEqual(server.model.asked.at(-1)?.messages[0], state.conversation_history?.[0]);
});

for (const stateKind of ["conversation_history", "previous_response_id"] as const) {
  test(`${stateKind}: what is open goes on without its files`, async (t) => {
    const tools = [
      {
        name: "send_it",
        description: "Sends.",
        parameters: { type: "object" },
        needsApproval: true,
        execute: () => "sent",
      },
    ];
    const asks = [[call("a", "send_it")], [say("Fine")], [call("b", "send_it")], [say("Half"), hang]];
    const server = await start(t, { stateKind, agent: { tools } as never }, asks);
    const first = (await send.json(t, server, { message: "Look", attachments: [PDF] })).last;
    const approvals = [{ id: "a", approved: true }];
    const { last } = await send.json(t, server, { approvals, state: omit(first.state) });
    assert.deepEqual([last.type, last.data], ["done", "Fine"]);

    const second = (await send.json(t, server, { message: "Again", attachments: [PDF], state: last.state })).last;
    const client = await connect(t, server.socketUrl);
    client.send({ message: "And this?", attachments: [PNG], state: omit(second.state) });
    await client.until("token");
    const stopped = (await client.run({ type: "stop" })).at(-1);
    assert.ok(stopped?.type === "done" && stopped.finish_reason === "stopped");
    // OpenAI stores nothing of an interrupted answer: `open` contains the message with its file.
    const { open } = stateKind === "conversation_history" ? { ...second.state } : { ...stopped.state };
    assert.match(JSON.stringify(open?.messages), /"omitted":/);
    for (const state of [second.state, stopped.state]) {
      const text = JSON.stringify(omit(state));
      const altered = text.replace(/"sha256":"./g, '"sha256":"_');
      if (altered === text) continue;
      assert.equal((await post(server, { message: "No", stream: false, state: JSON.parse(altered) })).status, 400);
    }
    const end = (await send.json(t, server, { message: "No", state: omit(stopped.state) })).last;
    assert.deepEqual([end.type, omit(end.state)], ["done", end.state]);
    const sent = JSON.stringify(server.model.asked.at(-1)?.sent);
    assert.match(sent, /And this\?.*"omitted","omitted".*Half.*No/);
  });
}

test("a message that is sent again under its name may bring its state without files", async (t) => {
  for (const env of [SIGNED, {}]) {
    const server = await start(t, { env });
    const { state } = (await send.json(t, server, { message: "Look", attachments: [PNG] })).last;
    const run = newRun();
    for (const given of [state, omit(state)]) {
      const { last } = await send.sse(t, server, { message: "Hi", run, state: given });
      assert.equal(last.type, "done");
    }
    assert.equal(server.model.asked.length, 2);
    const { last } = await send.sse(t, server, { message: "Hi", run, state: {} });
    assert.equal(last.type === "error" && last.code, "invalid_request");
  }
});

const file = fc
  .tuple(fc.constantFrom("image/png", "image/gif", "application/pdf"), fc.string(), fc.string({ minLength: 1 }))
  .map(([type, name, more]) => {
    const data = Buffer.from(more).toString("base64");
    const url = `data:${type};base64,${data}`;
    return type === "application/pdf"
      ? { type: "file", file: { filename: name, file_data: url } }
      : { type: "image_url", image_url: { url } };
  });
const exchange = fc
  .tuple(
    fc.string(),
    fc.array(fc.oneof(file, fc.record({ type: fc.constant("text"), text: fc.string() }))),
    fc.string(),
  )
  .map(([said, parts, answer]) => [
    { role: "user", content: [{ type: "text", text: said }, ...parts] },
    { role: "assistant", content: answer },
  ]);
const history = fc.array(exchange, { minLength: 1, maxLength: 4 }).map((all) => all.flat() as HistoryMessage[]);

test("whichever files of a conversation are omitted, it is taken, and with another digest it is not", () => {
  fc.assert(
    fc.property(history, history, fc.infiniteStream(fc.boolean()), (messages, later, choices) => {
      const name = "a-conversation-of-a-test";
      const open = { messages: later };
      const read = (state: unknown) => readState(JSON.parse(JSON.stringify(state)), binding);
      const whole = sealState({ conversation_history: messages, open }, name, binding);
      const slim = omit(whole, () => choices.next().value === true);
      const again = sealState(read(slim), name, binding);
      assert.deepEqual(again, slim);
      assert.deepEqual(omit(read(whole)), omit(read(slim)));
      for (const [digest] of JSON.stringify(slim).matchAll(/(?<="omitted","omitted":\{"sha256":")[^"]+/g)) {
        const other = digest.replace(/^./, digest[0] === "A" ? "B" : "A");
        const forged = JSON.stringify(slim).replace(
          `"omitted","omitted":{"sha256":"${digest}`,
          `"omitted","omitted":{"sha256":"${other}`,
        );
        assert.throws(
          () => read(JSON.parse(forged)),
          (error) => error instanceof ApiError && error.code === "invalid_state",
        );
      }
    }),
    { numRuns: 100 },
  );
});
