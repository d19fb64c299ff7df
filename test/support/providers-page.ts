/** The tables of docs/providers.md, for the tests that compare them. */

import assert from "node:assert/strict";
import { PROVIDER_ROWS, type ProviderId } from "../../server/providers/index.ts";
import { readMarkdown, section, tableRows } from "./markdown-file.ts";

export const PAGE = readMarkdown("docs/providers.md");

/** Rows of cells, the provider's first. */
export const MESSAGES = tableRows(section(PAGE, "### Messages"), "provider");
export const CONVERSATION = tableRows(section(PAGE, "### Conversation"), "provider");
/** The model's name as LiteLLM knows it is first. */
export const THROUGH_LITELLM = tableRows(section(PAGE, "### Through LiteLLM"), "behind the proxy");

/** The provider of a row: one that is set up in another way has a comma after it. */
export function asId(label: string): ProviderId {
  const [id = ""] = label.split(",");
  assert.ok(id in PROVIDER_ROWS, `there is no provider "${id}"`);
  return id as ProviderId;
}

export const said = (cell = "") => cell;
