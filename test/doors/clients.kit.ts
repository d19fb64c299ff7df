/**
 * OpenAI's clients, and programs made for them, at `/v1`: the real packages in their versions for Node 20 and 22, the Python
 * package, and LiteLLM as a proxy. npm run test:doors; without a `python3`, what needs it is skipped.
 */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { ApiError } from "../../server/protocol/errors.ts";
import { type NodeVersion, nodeFor } from "../agents/javascript.ts";
import { REPOSITORY } from "../support/command.ts";
import { PROCESS_MS } from "../support/deadline.ts";
import { DOOR_ENV, KEY } from "../support/doors.ts";
import { playFrames } from "../support/golden-frames.ts";
import { installLiteLlm, pythonVersion, startLiteLlm } from "../support/litellm-proxy.ts";
import { HEARD as HEARD_BEFORE, OPENAI_FRAMES } from "../support/openai-conversation.ts";
import { call, end, fail, say, think } from "../support/scripted-provider.ts";
import { type Cleanup, startServer, type TestServer } from "../support/start-server.ts";
import { echo } from "../support/test-tools.ts";
import { install } from "./install.ts";

const PROGRAMS = "test/doors/programs";

/** A server whose model answers the four questions of a program, in order. */
const serveProgram = (t: Cleanup): Promise<TestServer> =>
  startServer(t, {
    agent: { id: "agent", tools: [echo] },
    env: DOOR_ENV,
    turns: [
      [say("Your dog.")],
      [think("Hm."), say("Let me look."), call("a", "echo", { text: "x" })],
      [say("It is x."), end("stop", { input_tokens: 3, output_tokens: 2 })],
      [say("Without your tools.")],
      [fail(new ApiError("provider_auth", "No entry."))],
    ],
  });

/** The expected output of a program: its own tool was not called, and the failure was not retried. */
const HEARD = {
  whole: "Your dog.",
  streamed: "Let me look.\n\nIt is x.",
  thoughts: "Hm.",
  tokens: 5,
  loop: "Without your tools.",
  calls: 0,
  failure: 502,
};

const BEFORE = [
  { role: "user", content: "My dog is Rex." },
  { role: "assistant", content: "Noted." },
];

async function assertAnswered(server: TestServer, printed: Promise<{ stdout: string }>, deaf: object = {}) {
  assert.deepEqual(JSON.parse((await printed).stdout), { ...HEARD, ...deaf });
  assert.deepEqual(server.model.asked[0]?.sent, [...BEFORE, { role: "user", content: "Who is Rex?" }]);
  assert.equal(server.model.asked.length, 5);
}

const run = promisify(execFile);

interface Row {
  node: NodeVersion;
  program: string;
  package: string;
  /** Fields that it cannot receive, such as thinking. */
  deaf?: object;
}

const ROWS: Row[] = [
  { node: 20, program: "langchain.mjs", package: "@langchain/openai" },
  { node: 20, program: "agents.mjs", package: "@openai/agents", deaf: { thoughts: null } },
  { node: 20, program: "ai-sdk.mjs", package: "@ai-sdk/openai-compatible" },
  { node: 22, program: "openai.mjs", package: "openai" },
  { node: 22, program: "langchain.mjs", package: "@langchain/openai" },
  { node: 22, program: "agents.mjs", package: "@openai/agents", deaf: { thoughts: null } },
];

const places: Record<NodeVersion, [node: string, folder: string]> = {
  20: [await nodeFor(20), await install(20, PROGRAMS)],
  22: [await nodeFor(22), await install(22, PROGRAMS)],
};

for (const { node, program, package: name, deaf } of ROWS) {
  test(`${name} on Node ${node} reads whole answers and streams, and runs no tool of its own`, async (t) => {
    const [path, folder] = places[node];
    const server = await serveProgram(t);
    const env = { PATH: process.env.PATH, BASE_URL: `${server.url}/v1`, KEY };
    await assertAnswered(server, run(path, [join(folder, program)], { env, timeout: PROCESS_MS }), deaf);
  });
}

test("openai on Node 22 understands what the door has said before", async (t) => {
  const [path, folder] = places[22];
  const at = (name: string) => pathToFileURL(join(REPOSITORY, name)).href;
  const BASE_URL = await playFrames(t, "openai", OPENAI_FRAMES);
  const env = { PATH: process.env.PATH, BASE_URL, CONVERSATION: at("test/support/openai-conversation.ts") };
  const args = ["--import", at("node_modules/tsx/dist/esm/index.mjs"), join(folder, "frames.mjs")];
  const { stdout } = await run(path, args, { env, timeout: PROCESS_MS });
  assert.deepEqual(JSON.parse(stdout), HEARD_BEFORE);
});

const version = await pythonVersion();
const skip = version === undefined && "there is no python3 here";

test("openai in Python reads whole answers and streams", { skip }, async (t) => {
  const python = await installLiteLlm(version ?? "");
  const server = await serveProgram(t);
  const env = { PATH: process.env.PATH, BASE_URL: `${server.url}/v1`, KEY, NO_PROXY: "*" };
  await assertAnswered(server, run(python, [join(PROGRAMS, "client.py")], { env, timeout: PROCESS_MS }));
});

test("through LiteLLM as a proxy in front, openai in Python hears the same", { skip }, async (t) => {
  const python = await installLiteLlm(version ?? "");
  const server = await serveProgram(t);
  const params = { model: "openai/agent", api_base: `${server.url}/v1`, api_key: KEY };
  const proxy = await startLiteLlm(t, python, [{ model_name: "support", litellm_params: params }]);
  // LiteLLM does not forward that a failure must not be retried.
  const env = {
    PATH: process.env.PATH,
    BASE_URL: proxy.url,
    KEY: proxy.key,
    MODEL: "support",
    RETRIES: "0",
    NO_PROXY: "*",
  };
  const printed = run(python, [join(PROGRAMS, "client.py")], { env, timeout: PROCESS_MS });
  await assertAnswered(server, printed);
});
