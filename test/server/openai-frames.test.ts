/**
 * The Chat Completions door's recorded responses to OpenAI's package (test/fixtures/doors): they are the same today,
 * and newer packages understand them. By: FRAMES=write node --import tsx --test test/server/openai-frames.test.ts
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import { OpenAI } from "openai";
import { ApiError } from "../../server/protocol/errors.ts";
import { DOOR_ENV } from "../support/doors.ts";
import { framesOf, keepFrames, playFrames, recordFrames } from "../support/golden-frames.ts";
import { converse, HEARD, OPENAI_FRAMES } from "../support/openai-conversation.ts";
import { call, end, fail, say, think } from "../support/scripted-provider.ts";
import { startServer } from "../support/start-server.ts";
import { define, echo } from "../support/test-tools.ts";

test("the door says what it has said before", async (t) => {
  const pay = define("pay", () => "", { needsApproval: true, approvalText: () => "Pay 5 euros?" });
  const turns = [
    [say("Hello."), end("stop", { input_tokens: 3, output_tokens: 2 })],
    [think("Hm."), say("Let me look."), call("a", "echo", { text: "x" })],
    [say("It is x."), end("length", { input_tokens: 4, output_tokens: 3, cached_input_tokens: 1 })],
    [call("b", "pay")],
    [say("Without your tools.")],
    [fail(new ApiError("provider_auth", "No entry."))],
    [say("Half"), fail(new ApiError("provider_error", "No more."))],
  ];
  const { port } = await startServer(t, { env: DOOR_ENV, agent: { id: "agent", tools: [echo, pay] }, turns });
  const { said, url } = await recordFrames(t, port, OPENAI_FRAMES);
  assert.deepEqual(await converse(OpenAI, url), HEARD);
  keepFrames("openai", said);
  assert.deepEqual(said, framesOf("openai"));
});

test("the client understands what the door has said before", async (t) => {
  assert.deepEqual(await converse(OpenAI, await playFrames(t, "openai", OPENAI_FRAMES)), HEARD);
});
