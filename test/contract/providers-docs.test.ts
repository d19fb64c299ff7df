/** docs/providers.md, README and docs/api.md against what the providers' code takes, reads and is tested by. */

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { test } from "node:test";
import { MEDIA_TYPES } from "../../server/protocol/attachments.ts";
import {
  isProviderId,
  mediaTypesOf,
  type ProviderId,
  refuseSettings,
} from "../../server/providers/capabilities.ts";
import { SetupError } from "../../server/providers/failures/provider-error.ts";
import { resolveProvider } from "../../server/providers/index.ts";
import type { ModelSettings, Provider } from "../../server/providers/provider.ts";
import { readMarkdown, section, tableRows } from "../support/markdown-file.ts";
import { REPOSITORY } from "../support/spawned-server.ts";

const page = readMarkdown("docs/providers.md");
const api = readMarkdown("docs/api.md");
const readme = readMarkdown("README.md");
const messages = tableRows(section(page, "### Messages"), "provider");
const conversation = tableRows(section(page, "### Conversation"), "provider");

const sorted = <Item>(items: Iterable<Item>) => [...new Set(items)].sort();
const times = { firstChunk: 1000, idle: 1000 };
/** The row of OpenAI when it keeps nothing: a provider's row with another state. */
const STORE_FALSE = "openai, store: false";

/** The provider table's rows, as the refusal of an unknown one lists them. */
async function providerIds(): Promise<ProviderId[]> {
  const setup = { env: {}, times, settings: {}, loadPackage: () => assert.fail() };
  const { message } = await resolveProvider("nobody/x", setup).then(
    () => assert.fail("nobody/x was served"),
    (error: unknown) => (error instanceof SetupError ? error : assert.fail(String(error))),
  );
  const [, list = ""] = /Use one of: (.*)\.$/.exec(message) ?? [];
  return list.split(", ").map((form) => asId(form.replace("/NAME", "")));
}

function asId(label: string): ProviderId {
  const [id = ""] = label.split(",");
  return isProviderId(id) ? id : assert.fail(`there is no provider "${id}"`);
}

/** Names of environment variables in a text. */
function variablesIn(text: string): string[] {
  const names = text.match(/\b[A-Z]+(?:_[A-Z]+)+\b/g) ?? [];
  return sorted(names.filter((name) => !name.startsWith("PARLEY_")));
}

/** Every variable that the providers' code reads. */
function variablesInCode(): string[] {
  const folder = join(REPOSITORY, "server/providers");
  const code = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => readFileSync(join(folder, file), "utf8"));
  const reads = code.join("\n").matchAll(/\bread[A-Z]\w*\(\s*env,\s*"([A-Z_]+)"/g);
  return sorted([...reads].map(([, name = ""]) => name));
}

test("every provider has its row in each table of docs/providers.md, the README and docs/api.md", async () => {
  const ids = sorted(await providerIds());
  assert.ok(ids.length >= 9);
  const rows = sorted([...ids, STORE_FALSE]);
  for (const table of [messages, conversation]) {
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
  assert.deepEqual(variablesIn(section(page, "## Set-up and peculiarities")), known);
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

/** The text of a cell before its links. */
const said = (cell = "") => cell.split(": [")[0] ?? "";

test("the cells of images and PDF are what capabilities.ts says", () => {
  for (const [label = "", images, pdf] of messages) {
    const taken = mediaTypesOf(asId(label)).map((type) => MEDIA_TYPES[type]);
    const names = taken.filter(({ type }) => type === "image").map((image) => image.label);
    assert.equal(said(images), names.join(", "), label);
    assert.equal(said(pdf), taken.some(({ type }) => type === "file") ? "yes" : "no", label);
  }
});

/** A value of each setting, only to ask who takes it. */
const SETTINGS: Required<ModelSettings> = {
  reasoningEffort: "low",
  temperature: 1,
  maxOutputTokens: 300,
  extraBody: {},
  store: false,
  hostedTools: [],
};

test("the cells of model settings are what capabilities.ts says", () => {
  const words = new Map([
    ["none", []],
    ["four", ["reasoningEffort", "temperature", "maxOutputTokens", "extraBody"]],
    ["six", Object.keys(SETTINGS)],
  ]);
  for (const [label = "", , settings] of conversation) {
    const taken = Object.entries(SETTINGS).filter(([name, value]) =>
      takes(asId(label), { [name]: value }),
    );
    const names = taken.map(([name]) => name);
    assert.deepEqual(names, words.get(said(settings)), label);
  }
});

function takes(id: ProviderId, settings: ModelSettings): boolean {
  try {
    refuseSettings(id, settings);
    return true;
  } catch (error) {
    assert.ok(error instanceof SetupError);
    return false;
  }
}

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
  const text = section(page, `### ${HEADINGS[id]}`);
  const [install = "", dotEnv = "", model = ""] = [1, 2, 3].map(
    (number) => new RegExp(`^${number}\\. (.*)$`, "m").exec(text)?.[1],
  );
  const optional = /^Optional: [\s\S]*?\n\n/m.exec(`${text}\n\n`)?.[0] ?? "";
  return {
    lines: `${dotEnv}\n${optional}`,
    npmPackage: /`npm install (@?[^@`]+)/.exec(install)?.[1],
    env: Object.fromEntries(
      [...dotEnv.matchAll(/`([A-Z_]+)=([^`]*)`/g)].map(([, name = "", value = ""]) => [
        name,
        value,
      ]),
    ),
    model: /^Model: `([^`]+)`/.exec(model)?.[1] ?? "",
  };
}

for (const label of messages.map(([name = ""]) => name)) {
  test(`the three lines for ${label} serve its model, with the state that the table names`, async () => {
    const id = asId(label);
    const { env, model, npmPackage } = setupOf(id);
    const loaded: string[] = [];
    const provider: Provider = await resolveProvider(model, {
      env,
      times,
      settings: label === STORE_FALSE ? { store: false } : {},
      loadPackage: (name) => {
        loaded.push(name);
        return import(name);
      },
    });
    assert.equal(provider.id, id);
    assert.deepEqual(loaded, npmPackage === undefined ? [] : [npmPackage]);
    const row = conversation.find(([name]) => name === label);
    assert.equal(said(row?.[1]), provider.stateKind);
  });
}

test("the README installs each provider's package as docs/providers.md does", () => {
  const installs = (text: string) => sorted(text.match(/npm install @?[\w/-]+@\d+/g) ?? []);
  assert.equal(installs(page).length, 3);
  assert.deepEqual(installs(section(readme, "## Models")), installs(page));
});

/** The definitions at the page's end: where a link of a cell leads, and which test it means. */
const links = new Map(
  [...page.matchAll(/^\[([\w-]+)\]: (\S+)(?: "(.*)")?$/gm)].map(([, id = "", path = "", title]) => [
    id,
    { path, title },
  ]),
);

/** The titles of a file's tests. What stands in `${}` is only known when they run; a title that is nothing else is none. */
function titlesOf(path: string): RegExp[] {
  const source = readFileSync(join(REPOSITORY, path), "utf8");
  const titles = [...source.matchAll(/\btest\(\s*(["'`])(.*?)\1,/g)];
  return titles.flatMap(([, , title = ""]) => {
    const fixed = title.split(/\$\{[^}]*\}/);
    if (fixed.join("").trim() === "") return [];
    const parts = fixed.map((part) => part.replace(/[^\w\s]/g, "\\$&"));
    return new RegExp(`^${parts.join(".+")}$`);
  });
}

test("each cell links to a test file that exists, under its name, and every title is one of its tests'", () => {
  const used = new Set<string>();
  const cells = [...messages, ...conversation].flatMap(([label = "", ...rest]) =>
    rest.map((cell) => ({ cell, label })),
  );
  for (const { cell, label } of cells) {
    const found = [...cell.matchAll(/\[([\w-]+)\]\[([\w-]+)\]/g)];
    assert.notEqual(found.length, 0, `${label}: "${cell}" names no test`);
    for (const [link, text, id = ""] of found) {
      used.add(id);
      const { path, title } = links.get(id) ?? assert.fail(`${link} leads nowhere`);
      assert.equal(basename(path), `${text}.test.ts`);
      const titles = titlesOf(join("docs", path));
      assert.notEqual(titles.length, 0, path);
      if (title !== undefined) {
        assert.ok(
          titles.some((known) => known.test(title)),
          `${path} has no test "${title}"`,
        );
      }
    }
  }
  const others = [...page.matchAll(/\]\[([\w-]+)\]/g)].map(([, id = ""]) => id);
  assert.deepEqual(sorted(links.keys()), sorted([...used, ...others]));
});
