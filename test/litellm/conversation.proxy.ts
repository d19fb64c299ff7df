/**
 * Parley's command, a real LiteLLM proxy, and aimock as the provider behind it. Each message is sent to a new Parley
 * process: only the state connects the first and the second.
 */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type FixtureResponse, LLMock } from "@copilotkit/aimock";
import { attachment } from "../support/files.ts";
import { startGoogleAccount } from "../support/google-account.ts";
import { askOnce, type Recorder, seen, startRecorder, weatherProject } from "../support/litellm-agent.ts";
import { PROVIDER_ROWS, type ProviderRow } from "../support/litellm-provider-rows.ts";
import { installLiteLlm, type LiteLlm, openLifetime, pythonVersion, startLiteLlm } from "../support/litellm-proxy.ts";

const version = await pythonVersion();
const skip = version === undefined && "LiteLLM needs python3, and there is none on this machine";

const IMAGES = (["image/jpeg", "image/png", "image/gif", "image/webp"] as const).map((type) =>
  attachment(type, { bytes: 100 }),
);
const PDF = attachment("application/pdf", { bytes: 200 });

const lifetime = openLifetime();
let litellm: LiteLlm;
let recorder: Recorder;

before(async () => {
  if (version === undefined) return;
  const mock = new LLMock({ port: 0, strict: true });
  for (const row of PROVIDER_ROWS) scriptModel(mock, row);
  await mock.start();
  lifetime.after(() => mock.stop());
  recorder = await startRecorder(lifetime, mock.url, inCamelCase);
  const googleCredentials = await startGoogleAccount(lifetime);
  const models = PROVIDER_ROWS.map(({ name, params }) => ({
    model_name: name,
    litellm_params: params({ url: recorder.url, googleCredentials }),
  }));
  litellm = await startLiteLlm(lifetime, await installLiteLlm(version), models);
});

after(() => lifetime.end());

/** First message: two calls, then an answer; second message: one call, then an answer. */
function scriptModel(mock: LLMock, { model, usage }: ProviderRow): void {
  const call = (city: string) => ({ name: "get_weather", arguments: JSON.stringify({ city }) });
  const told = (userMessage: string, hasToolResult: boolean, response: FixtureResponse) =>
    void mock.addFixture({ match: { model, userMessage, hasToolResult }, response });
  told("Lima", false, { reasoning: "Two cities.", toolCalls: [call("Lima"), call("Oslo")], usage });
  told("Lima", true, { reasoning: "I know both.", content: "Mild and cold.", usage });
  told("Cairo", false, { reasoning: "One more.", toolCalls: [call("Cairo")], usage });
  told("Cairo", true, { reasoning: "Clear.", content: "Hot.", usage });
}

/** LiteLLM uses protobuf's names for Gemini's fields, which Google accepts but aimock does not know. */
function inCamelCase(body: string): string {
  return body.replaceAll(
    /"(function|inline)_(call|response|declarations|data)":/g,
    (_field, first: string, second: string) => `"${first}${second.slice(0, 1).toUpperCase()}${second.slice(1)}":`,
  );
}

for (const row of PROVIDER_ROWS) {
  const files = row.takesPdf ? [...IMAGES, PDF] : IMAGES;
  const bytes = files.map(({ data }) => data);
  const thinking = (text: string) => (row.thinks ? [["thinking", text]] : []);

  const what = [...(row.thinks ? ["thinking"] : []), "two tools", row.takesPdf ? "images and a PDF" : "images"];
  test(`${row.name}: ${what.join(", ")}, and a restart before the second message`, { skip }, async (t) => {
    const project = weatherProject(t, row.name, row.takesEffort ? undefined : {});
    const message = "Weather in Lima and Oslo?";
    const first = await askOnce(project, litellm, "sse", { message, attachments: files });
    assert.deepEqual(seen(first), [
      ...thinking("Two cities."),
      ["tool_call", "get_weather", { city: "Lima" }],
      ["tool_call", "get_weather", { city: "Oslo" }],
      ["tool_result", "It is mild in Lima.", "completed"],
      ["tool_result", "It is cold in Oslo.", "completed"],
      ...thinking("I know both."),
      ["token", "Mild and cold."],
      ["done", "Mild and cold."],
    ]);
    assert.ok(first.last.type === "done");
    // Both requests of the run together. aimock reports no usage for Ollama.
    const counted = row.name !== "ollama";
    const { input_tokens: input, output_tokens: output } = first.last.usage ?? {};
    assert.deepEqual([input, output], counted ? [60, 24] : [0, 0]);
    const { state } = first.last;
    const second = await askOnce(project, litellm, "socket", { message: "And Cairo?", state });
    assert.deepEqual(seen(second), [
      ...thinking("One more."),
      ["tool_call", "get_weather", { city: "Cairo" }],
      ["tool_result", "It is hot in Cairo.", "completed"],
      ...thinking("Clear."),
      ["token", "Hot."],
      ["done", "Hot."],
    ]);
    const calls = recorder.take();
    assert.deepEqual(
      calls.map(({ path }) => path),
      [row.path, row.path, row.path, row.path],
    );
    const results = ["It is mild in Lima.", "It is cold in Oslo."];
    const told = calls.map(({ json }) => row.told(json));
    assert.deepEqual(
      told.map((request) => request.results),
      [[], results, results, [...results, "It is hot in Cairo."]],
    );
    for (const { files: sent } of told) assert.deepEqual(sent, bytes);
    assert.deepEqual(told[1]?.thoughts, row.replayed);
    for (const { body } of calls) assert.match(body, /"Use the tool\."/);
  });
}

/**
 * The one cell of the table that cannot be tested otherwise: Ollama's API has no PDFs. Parley rejects them when it
 * calls Ollama directly, but cannot know the provider behind a LiteLLM name; LiteLLM drops them silently.
 */
test("ollama: LiteLLM leaves a PDF out without a word", { skip }, async (t) => {
  const project = weatherProject(t, "ollama");
  const message = "And Cairo, by the PDF?";
  const { last } = await askOnce(project, litellm, "json", { message, attachments: [PDF] });
  assert.equal(last.data, "Hot.");
  for (const { body } of recorder.take()) assert.ok(!body.includes(String(PDF.data)));
});

test("a model that LiteLLM has no route for is a mistake of the set-up, not of the client", { skip }, async (t) => {
  const project = weatherProject(t, "unknown");
  const { status, last } = await askOnce(project, litellm, "json", { message: "Hi" });
  assert.equal(status, 502);
  assert.ok(last.type === "error" && last.code === "provider_error");
});
