/** The cells of docs/providers.md against what the providers' code takes, and the tests that they name. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { test } from "node:test";
import { MEDIA_TYPES } from "../../server/protocol/attachments.ts";
import { mediaTypesOf, type ProviderId, refuseSettings } from "../../server/providers/capabilities.ts";
import { SetupError } from "../../server/providers/failures/provider-error.ts";
import type { ModelSettings } from "../../server/providers/provider.ts";
import { REPOSITORY } from "../support/command.ts";
import { LITELLM_VERSION } from "../support/litellm-install.ts";
import { conversationTitle, PROVIDER_ROWS } from "../support/litellm-provider-rows.ts";
import { asId, CONVERSATION, MESSAGES, PAGE, said, THROUGH_LITELLM } from "../support/providers-page.ts";

const sorted = (items: Iterable<string>) => [...new Set(items)].sort();

test("the cells of images and PDF are what capabilities.ts says", () => {
  for (const [label = "", images, pdf] of MESSAGES) {
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
  for (const [label = "", , settings] of CONVERSATION) {
    const taken = Object.entries(SETTINGS).filter(([name, value]) => takes(asId(label), { [name]: value }));
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

test("the table of what goes through LiteLLM has the models that are tried, each by tests of its own", () => {
  assert.ok(PAGE.includes(`a real LiteLLM proxy, version ${LITELLM_VERSION},`));
  const upstream = { url: "http://127.0.0.1:9", googleCredentials: "{}" };
  const models = PROVIDER_ROWS.map(({ params }) => params(upstream).model);
  assert.deepEqual(
    THROUGH_LITELLM.map(([model]) => model),
    models,
  );
  for (const [index, { name, takesPdf, thinks }] of PROVIDER_ROWS.entries()) {
    const [model, images, pdf, thinking, ...others] = THROUGH_LITELLM[index] ?? [];
    assert.equal(said(images), "yes", model);
    assert.equal(said(pdf).startsWith("yes"), takesPdf, model);
    // What aimock's thinking does not show for a model, a stream made for it may.
    if (thinks) assert.notEqual(said(thinking), "none", model);
    for (const cell of [images, pdf, thinking, ...others]) {
      for (const [, id = ""] of (cell ?? "").matchAll(/\]\[([\w-]+)\]/g)) {
        const title = links.get(id)?.title ?? "";
        assert.ok(title.startsWith(`${name}: `), `${model} is not what "${title}" is about`);
      }
    }
  }
});

/** The definitions at the page's end: where a link of a cell leads, and which test it means. */
const links = new Map(
  [...PAGE.matchAll(/^\[([\w-]+)\]: (\S+)(?: "(.*)")?$/gm)].map(([, id = "", path = "", title]) => [
    id,
    { path, title },
  ]),
);

/** The titles of a file's tests. What stands in `${}` is only known when they run; a title that is nothing else is none. */
function titlesOf(path: string): RegExp[] {
  const source = readFileSync(join(REPOSITORY, path), "utf8");
  const titles = [...source.matchAll(/\btest\(\s*(["'`])(.*?)\1,/g)];
  const computed = source.includes("test(conversationTitle(row),") ? PROVIDER_ROWS : [];
  const known = computed.map((row) => new RegExp(`^${conversationTitle(row)}$`));
  return [
    ...known,
    ...titles.flatMap(([, , title = ""]) => {
      const fixed = title.split(/\$\{[^}]*\}/);
      if (fixed.join("").trim() === "") return [];
      const parts = fixed.map((part) => part.replace(/[^\w\s]/g, "\\$&"));
      return new RegExp(`^${parts.join(".+")}$`);
    }),
  ];
}

test("each cell links to a test file that exists, under its name, and every title is one of its tests'", () => {
  const used = new Set<string>();
  const cells = [...MESSAGES, ...CONVERSATION, ...THROUGH_LITELLM].flatMap(([label = "", ...rest]) =>
    rest.map((cell) => ({ cell, label })),
  );
  for (const { cell, label } of cells) {
    const found = [...cell.matchAll(/\[([\w-]+)\]\[([\w-]+)\]/g)];
    assert.notEqual(found.length, 0, `${label}: "${cell}" names no test`);
    for (const [link, text, id = ""] of found) {
      used.add(id);
      const { path, title } = links.get(id) ?? assert.fail(`${link} leads nowhere`);
      assert.equal(basename(path).replace(/\.(?:test|proxy)\.ts$/, ""), text);
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
  const others = [...PAGE.matchAll(/\]\[([\w-]+)\]/g)].map(([, id = ""]) => id);
  assert.deepEqual(sorted(links.keys()), sorted([...used, ...others]));
});
