import assert from "node:assert/strict";
import { test } from "node:test";
import { readSettings } from "../../server/config/settings.ts";
import { ConfigError } from "../../server/errors.ts";
import { PROVIDER_ROWS, type ProviderId, resolveProvider } from "../../server/providers/index.ts";
import type { ModelSettings } from "../../server/providers/provider.ts";
import { send } from "../support/chat-transports.ts";
import { attachment } from "../support/files.ts";
import { startServer } from "../support/start-server.ts";

/** What each provider needs to be set up; nothing here is called. */
const ENV = {
  OPENAI_API_KEY: "sk-test",
  LITELLM_BASE_URL: "http://127.0.0.1:9",
  COMPATIBLE_BASE_URL: "http://127.0.0.1:9/v1",
  ANTHROPIC_API_KEY: "sk-test",
  GEMINI_API_KEY: "test",
  AWS_REGION: "eu-central-1",
  AWS_BEARER_TOKEN_BEDROCK: "test",
  GOOGLE_CLOUD_PROJECT: "project",
  GOOGLE_CLOUD_LOCATION: "europe-west1",
  VERTEX_ACCESS_TOKEN: "test",
};

const MODELS: Record<ProviderId, string> = {
  openai: "openai/gpt-5.2",
  litellm: "litellm/team/model",
  anthropic: "anthropic/claude-sonnet-4-5",
  gemini: "gemini/gemini-2.5-flash",
  vertex: "vertex/gemini-2.5-flash",
  ollama: "ollama/llama3.2-vision",
  bedrock: "bedrock/eu.anthropic.claude-sonnet-4-5-20250929-v1:0",
  compatible: "compatible/model",
  demo: "demo",
};
const IDS = Object.keys(MODELS) as ProviderId[];

const resolve = (id: ProviderId, modelSettings: ModelSettings = {}) =>
  resolveProvider(MODELS[id], { settings: readSettings(ENV), modelSettings, loadPackage: (name) => import(name) });

for (const id of IDS) {
  test(`${id} takes the media types of the table`, async () => {
    const provider = await resolve(id);
    assert.equal(provider.id, id);
    assert.deepEqual(provider.mediaTypes, PROVIDER_ROWS[id].mediaTypes);
  });
}

test("PDFs are taken by all providers but Ollama, and GIFs by all but Ollama and Google's", () => {
  const without = (type: "application/pdf" | "image/gif") =>
    IDS.filter((id) => !PROVIDER_ROWS[id].mediaTypes.includes(type));
  assert.deepEqual(without("application/pdf"), ["ollama"]);
  assert.deepEqual(without("image/gif"), ["gemini", "vertex", "ollama"]);
});

test("a file that the provider does not take is refused in words before any request", async (t) => {
  const server = await startServer(t, { agent: { model: MODELS.ollama }, env: ENV });
  const info = await (await fetch(`${server.url}/api/info`)).json();
  assert.deepEqual(info.attachments.media_types, ["image/jpeg", "image/png", "image/webp"]);
  const attachments = [attachment("application/pdf")];
  const { status, last } = await send.json(t, server, { message: "Read", attachments });
  assert.equal(status, 415);
  assert.equal(last.type === "error" && last.code, "unsupported_attachment");
  assert.match(String(last.data), /^attachments\[0\]\.mime_type is PDF; .* JPEG, PNG and WebP/);
  assert.doesNotMatch(String(last.data), /Ollama/);
});

/** One value of each setting, and who takes it. */
const SETTINGS: { settings: ModelSettings; takenBy: readonly ProviderId[] }[] = [
  { settings: { reasoningEffort: "low" }, takenBy: IDS.filter((id) => id !== "demo") },
  { settings: { temperature: 1 }, takenBy: IDS.filter((id) => id !== "demo") },
  { settings: { maxOutputTokens: 20_000 }, takenBy: IDS.filter((id) => id !== "demo") },
  { settings: { extraBody: { user: "u" } }, takenBy: IDS.filter((id) => id !== "demo") },
  { settings: { store: false }, takenBy: ["openai"] },
  { settings: { store: true }, takenBy: ["openai"] },
  { settings: { hostedTools: [{ type: "web_search" }] }, takenBy: ["openai"] },
];

for (const { settings, takenBy } of SETTINGS) {
  const [name = ""] = Object.keys(settings);
  test(`${JSON.stringify(settings)} starts only where it does something`, async () => {
    for (const id of IDS) {
      if (takenBy.includes(id)) {
        await resolve(id, settings);
        continue;
      }
      await assert.rejects(resolve(id, settings), {
        name: "ConfigError",
        message: `${name} does nothing with a model of ${id}: remove it, or use a model of ${takenBy.join(", ")}.`,
      });
    }
  });
}

test("extraBody cannot set store behind the back of the state", async () => {
  await assert.rejects(
    resolve("openai", { extraBody: { store: false } }),
    (error: unknown) => error instanceof ConfigError && /^extraBody\.store/.test(error.message),
  );
});
