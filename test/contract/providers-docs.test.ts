/** The cells of docs/providers.md, against the table of providers. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { MEDIA_TYPES } from "../../server/protocol/attachments.ts";
import { PROVIDER_ROWS as PROVIDERS } from "../../server/providers/index.ts";
import { LITELLM_VERSION } from "../support/litellm-install.ts";
import { PROVIDER_ROWS as LITELLM_ROWS } from "../support/litellm-provider-rows.ts";
import { asId, CONVERSATION, MESSAGES, PAGE, said, THROUGH_LITELLM } from "../support/providers-page.ts";

const sorted = (items: Iterable<string>) => [...new Set(items)].sort();

test("each provider has its row", () => {
  for (const table of [MESSAGES, CONVERSATION]) {
    assert.deepEqual(sorted(table.map(([label = ""]) => asId(label))), sorted(Object.keys(PROVIDERS)));
  }
});

test("the cells of images and PDF are what the table of providers says", () => {
  for (const [label = "", images, pdf] of MESSAGES) {
    const taken = PROVIDERS[asId(label)].mediaTypes.map((type) => MEDIA_TYPES[type]);
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
    assert.deepEqual(PROVIDERS[asId(label)].modelSettings, words.get(said(settings)), label);
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
    assert.equal(said(images), "yes", model);
    assert.equal(said(pdf).startsWith("yes"), takesPdf, model);
    // What aimock's thinking does not show for a model, a stream made for it may.
    if (thinks) assert.notEqual(said(thinking), "none", model);
  }
});
