/** docs/providers.md against the tables of providers and of settings, and the test files that its cells name. */

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import { test } from "node:test";
import { readSettings, SETTINGS } from "../../server/config/settings.ts";
import { MEDIA_TYPES } from "../../server/protocol/attachments.ts";
import { PROVIDER_ROWS, type ProviderId, resolveProvider } from "../../server/providers/index.ts";
import { REPOSITORY } from "../support/command.ts";
import { PROVIDER_ROWS as LITELLM_ROWS } from "../support/litellm-provider-rows.ts";
import { LITELLM_VERSION } from "../support/litellm-proxy.ts";
import { readMarkdown, section, tableRows } from "../support/markdown-file.ts";

const PAGE = readMarkdown("docs/providers.md");

/** Rows of cells, the provider's first. */
const MESSAGES = tableRows(section(PAGE, "### Messages"), "provider");
const CONVERSATION = tableRows(section(PAGE, "### Conversation"), "provider");
/** The model's name as LiteLLM knows it is first. */
const THROUGH_LITELLM = tableRows(section(PAGE, "### Through LiteLLM"), "behind the proxy");

/** The provider of a row: one that is set up in another way has a comma after it. */
function asId(label: string): ProviderId {
  const [id = ""] = label.split(",");
  assert.ok(id in PROVIDER_ROWS, `there is no provider "${id}"`);
  return id as ProviderId;
}

/** The text of a cell before its links. */
const said = (cell = "") => cell.split(": [")[0] ?? "";

test("each provider has its row", () => {
  for (const table of [MESSAGES, CONVERSATION]) {
    assert.deepEqual(sorted(table.map(([label = ""]) => asId(label))), sorted(Object.keys(PROVIDER_ROWS)));
  }
});

test("the cells of images and PDF are what the table of providers says", () => {
  for (const [label = "", images, pdf] of MESSAGES) {
    const taken = PROVIDER_ROWS[asId(label)].mediaTypes.map((type) => MEDIA_TYPES[type]);
    const names = taken.filter(({ type }) => type === "image").map((image) => image.label);
    assert.equal(said(images), names.join(", "), label);
    assert.equal(said(pdf), taken.some(({ type }) => type === "file") ? "yes" : "no", label);
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
    assert.deepEqual(PROVIDER_ROWS[asId(label)].modelSettings, words.get(said(settings)), label);
  }
});

test("the table of what goes through LiteLLM has the models that are tried", () => {
  assert.ok(PAGE.includes(`a real LiteLLM proxy, version ${LITELLM_VERSION},`));
  const upstream = { url: "http://127.0.0.1:9", googleCredentials: "{}" };
  assert.deepEqual(
    THROUGH_LITELLM.map(([model]) => model),
    LITELLM_ROWS.map(({ params }) => params(upstream).model),
  );
  for (const [index, { takesPdf, thinks }] of LITELLM_ROWS.entries()) {
    const [model, images, pdf, thinking] = THROUGH_LITELLM[index] ?? [];
    assert.equal(said(images), "yes", model);
    assert.equal(said(pdf).startsWith("yes"), takesPdf, model);
    // What aimock's thinking does not show for a model, a stream made for it may.
    if (thinks) assert.notEqual(said(thinking), "none", model);
  }
});

test("each cell links to a test file that exists, under its name", () => {
  const links = new Map([...PAGE.matchAll(/^\[([\w-]+)\]: (\S+)$/gm)].map(([, id = "", path = ""]) => [id, path]));
  for (const [label = "", ...cells] of [...MESSAGES, ...CONVERSATION, ...THROUGH_LITELLM]) {
    for (const cell of cells) {
      const found = [...cell.matchAll(/\[([\w-]+)\]\[([\w-]+)\]/g)];
      assert.notEqual(found.length, 0, `${label}: "${cell}" names no test`);
      for (const [link, text, id = ""] of found) {
        const path = links.get(id) ?? assert.fail(`${link} leads nowhere`);
        assert.equal(basename(path).replace(/\.(?:test|proxy)\.ts$/, ""), text);
        assert.ok(existsSync(join(REPOSITORY, "docs", path)), path);
      }
    }
  }
  const used = [...PAGE.matchAll(/\]\[([\w-]+)\]/g)].map(([, id = ""]) => id);
  assert.deepEqual(sorted(links.keys()), sorted(used));
});

// How docs/providers.md, README and docs/api.md set a provider up, against the tables of providers and of settings.

const api = readMarkdown("docs/api.md");
const readme = readMarkdown("README.md");

const sorted = <Item>(items: Iterable<Item>) => [...new Set(items)].sort();
/** The row of OpenAI when it keeps nothing: a provider's row with another state. */
const STORE_FALSE = "openai, store: false";

/** Names of environment variables in a text. */
function variablesIn(text: string): string[] {
  const names = text.match(/\b[A-Z]+(?:_[A-Z]+)+\b/g) ?? [];
  return sorted(names.filter((name) => !name.startsWith("PARLEY_")));
}

/** Every variable that the rows of providers name. */
function variablesInCode(): string[] {
  return sorted(Object.values(PROVIDER_ROWS).flatMap(({ settings }) => settings.map((key) => SETTINGS[key].name)));
}

test("every provider has its row in each table of docs/providers.md, the README and docs/api.md", () => {
  const ids = sorted(Object.keys(PROVIDER_ROWS));
  assert.ok(ids.length >= 9);
  const rows = sorted([...ids, STORE_FALSE]);
  for (const table of [MESSAGES, CONVERSATION]) {
    assert.deepEqual(table.map(([id = ""]) => id).sort(), rows);
  }
  for (const markdown of [section(readme, "## Models"), section(api, "## Providers")]) {
    const named = tableRows(markdown, "`model`").map(([model = ""]) => model.split("/")[0]);
    assert.deepEqual(named.sort(), ids);
  }
});

test("docs/providers.md and docs/api.md name exactly the variables that the providers read", () => {
  const known = variablesInCode();
  assert.ok(known.length >= 20);
  assert.deepEqual(variablesIn(section(PAGE, "## Set-up and peculiarities")), known);
  const rows = tableRows(section(api, "## Providers"), "`model`");
  assert.deepEqual(variablesIn(rows.map(([, , cell]) => cell).join(" ")), known);
});

test("a provider's variables in docs/api.md are those of its section in docs/providers.md", () => {
  const rows = tableRows(section(api, "## Providers"), "`model`");
  for (const [model = "", , cell = ""] of rows) {
    const id = asId(model.split("/")[0] ?? "");
    assert.deepEqual(variablesIn(setupOf(id).lines), variablesIn(cell), id);
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

/** The three lines with which a provider is set up, and all that is said of its variables. */
function setupOf(id: ProviderId) {
  const text = section(PAGE, `### ${HEADINGS[id]}`);
  const [install = "", dotEnv = "", model = ""] = [1, 2, 3].map(
    (number) => new RegExp(`^${number}\\. (.*)$`, "m").exec(text)?.[1],
  );
  const optional = /^Optional: [\s\S]*?\n\n/m.exec(`${text}\n\n`)?.[0] ?? "";
  return {
    lines: `${dotEnv}\n${optional}`,
    npmPackage: /`npm install (@?[^@`]+)/.exec(install)?.[1],
    env: Object.fromEntries(
      [...dotEnv.matchAll(/`([A-Z_]+)=([^`]*)`/g)].map(([, name = "", value = ""]) => [name, value]),
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
    assert.equal(said(row?.[1]), provider.stateKind);
  });
}

test("the README installs each provider's package as docs/providers.md does", () => {
  const installs = (text: string) => sorted(text.match(/npm install @?[\w/-]+@\d+/g) ?? []);
  assert.equal(installs(PAGE).length, 3);
  assert.deepEqual(installs(section(readme, "## Models")), installs(PAGE));
});
