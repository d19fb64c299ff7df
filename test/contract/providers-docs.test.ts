/** Compares docs/providers.md with the tables of providers and of settings. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { readSettings, SETTINGS } from "../../server/config/settings.ts";
import { MEDIA_TYPES } from "../../server/protocol/attachments.ts";
import { PROVIDER_ROWS, type ProviderId, resolveProvider } from "../../server/providers/index.ts";
import { PROVIDER_ROWS as LITELLM_ROWS } from "../support/litellm-provider-rows.ts";
import { LITELLM_VERSION } from "../support/litellm-proxy.ts";
import { readMarkdown, section, tableRows } from "../support/markdown-file.ts";

const PAGE = readMarkdown("docs/providers.md");

/** Rows of cells; the provider is in the first cell. */
const MESSAGES = tableRows(section(PAGE, "### Messages"), "provider");
const CONVERSATION = tableRows(section(PAGE, "### Conversation"), "provider");
/** The first cell is the model's name in LiteLLM. */
const THROUGH_LITELLM = tableRows(section(PAGE, "### Through LiteLLM"), "behind the proxy");

/** The provider of a row; a variant follows after a comma. */
function asId(label: string): ProviderId {
  const [id = ""] = label.split(",");
  assert.ok(id in PROVIDER_ROWS, `there is no provider "${id}"`);
  return id as ProviderId;
}

const sorted = (items: Iterable<string>) => [...new Set(items)].sort();

test("the cells of images and PDF are what the table of providers says", () => {
  for (const [label = "", images, pdf] of MESSAGES) {
    const taken = PROVIDER_ROWS[asId(label)].mediaTypes.map((type) => MEDIA_TYPES[type]);
    const names = taken.filter(({ type }) => type === "image").map((image) => image.label);
    assert.equal(images, names.join(", "), label);
    assert.equal(pdf ?? "", taken.some(({ type }) => type === "file") ? "yes" : "no", label);
  }
});

test("the cells of model settings are what the table of providers says", () => {
  const four = ["reasoningEffort", "temperature", "maxOutputTokens", "extraBody"];
  const words = new Map([
    ["none", []],
    ["four", four],
    ["six", [...four, "store", "hostedTools"]],
  ]);
  for (const [label = "", , settings] of CONVERSATION) {
    assert.deepEqual(PROVIDER_ROWS[asId(label)].modelSettings, words.get(settings ?? ""), label);
  }
});

test("the table of what goes through LiteLLM has the models that are tried", () => {
  assert.ok(PAGE.includes(`a LiteLLM proxy, version ${LITELLM_VERSION},`));
  const upstream = { url: "http://127.0.0.1:9", googleCredentials: "{}" };
  assert.deepEqual(
    THROUGH_LITELLM.map(([model]) => model),
    LITELLM_ROWS.map(({ params }) => params(upstream).model),
  );
  for (const [index, { takesPdf, thinks }] of LITELLM_ROWS.entries()) {
    const [model, images, pdf, thinking] = THROUGH_LITELLM[index] ?? [];
    assert.equal(images, "yes", model);
    assert.equal((pdf ?? "").startsWith("yes"), takesPdf, model);
    // If aimock has no thinking for a model, a recorded stream may have some.
    if (thinks) assert.notEqual(thinking, "none", model);
  }
});

/** The row for OpenAI without storage, whose state is of another kind. */
const STORE_FALSE = "openai, store: false";

/** Names of environment variables in a text. */
function variablesIn(text: string): string[] {
  const names = text.match(/\b[A-Z]+(?:_[A-Z]+)+\b/g) ?? [];
  return sorted(names.filter((name) => !name.startsWith("PARLEY_")));
}

/** All variables in the provider rows. */
function variablesInCode(): string[] {
  return sorted(Object.values(PROVIDER_ROWS).flatMap(({ settings }) => settings.map((key) => SETTINGS[key].name)));
}

test("every provider has its row in each table of docs/providers.md", () => {
  const ids = sorted(Object.keys(PROVIDER_ROWS));
  assert.ok(ids.length >= 9);
  const rows = sorted([...ids, STORE_FALSE]);
  for (const table of [MESSAGES, CONVERSATION]) {
    assert.deepEqual(table.map(([id = ""]) => id).sort(), rows);
  }
  const named = tableRows(PAGE, "`model`").map(([model = ""]) => /\w+/.exec(model)?.[0] ?? "");
  assert.deepEqual(named.sort(), ids);
});

test("docs/providers.md names exactly the variables that the providers read, each provider's in its section", () => {
  assert.ok(variablesInCode().length >= 20);
  assert.deepEqual(variablesIn(section(PAGE, "## Set-up")), variablesInCode());
  for (const [id, { settings }] of Object.entries(PROVIDER_ROWS)) {
    const known = sorted(settings.map((key) => SETTINGS[key].name));
    assert.deepEqual(variablesIn(setupOf(id as ProviderId).lines), known, id);
  }
});

const HEADINGS: Record<ProviderId, string> = {
  openai: "OpenAI",
  anthropic: "Anthropic",
  gemini: "Gemini",
  bedrock: "AWS Bedrock",
  vertex: "Vertex AI",
  ollama: "Ollama",
  litellm: "LiteLLM",
  compatible: "Compatible servers",
  demo: "Demo",
};

/** The three steps of a provider's setup, and the text about its variables. */
function setupOf(id: ProviderId) {
  const text = section(PAGE, `### ${HEADINGS[id]}`);
  const [install = "", dotEnv = "", model = ""] = [1, 2, 3].map(
    (number) => new RegExp(`^${number}\\. (.*)$`, "m").exec(text)?.[1],
  );
  const optional = /^Optional: [\s\S]*?\n\n/m.exec(`${text}\n\n`)?.[0] ?? "";
  return {
    lines: `${dotEnv}\n${optional}`,
    npmPackage: /`npm install (@?[^@`]+)/.exec(install)?.[1],
    // Readers replace `sk-...` by their own key.
    env: Object.fromEntries(
      [...dotEnv.matchAll(/`([A-Z_]+)=([^`]*)`/g)].map(([, name = "", value = ""]) => [
        name,
        value.replace("...", "1"),
      ]),
    ),
    model: /^Model: `([^`]+)`/.exec(model)?.[1] ?? "",
  };
}

for (const label of MESSAGES.map(([name = ""]) => name)) {
  test(`the three lines for ${label} serve its model, with the state that the table names`, async () => {
    const id = asId(label);
    const { env, model, npmPackage } = setupOf(id);
    const loaded: string[] = [];
    const provider = await resolveProvider(model, {
      settings: readSettings(env),
      modelSettings: label === STORE_FALSE ? { store: false } : {},
      loadPackage: (name) => {
        loaded.push(name);
        return import(name);
      },
    });
    assert.equal(provider.id, id);
    assert.deepEqual(loaded, npmPackage === undefined ? [] : [npmPackage]);
    const row = CONVERSATION.find(([name]) => name === label);
    assert.equal(row?.[1], provider.stateKind);
  });
}

test("the table at the top installs each provider's package as its section does", () => {
  const installs = (text: string) => sorted(text.match(/npm install @?[\w/-]+@\d+/g) ?? []);
  const top = tableRows(PAGE, "`model`").map(([, , needs = ""]) => needs);
  assert.equal(installs(top.join(" ")).length, 2);
  assert.deepEqual(installs(top.join(" ")), installs(section(PAGE, "## Set-up")));
});
