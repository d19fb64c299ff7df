import { html } from "lit";
import { keyed } from "lit/directives/keyed.js";
import { markdown } from "../markdown/markdown-directive.ts";
import { strings } from "../strings.ts";
import type { Reply, TextBlock } from "../transcript.ts";
import type { ViewState } from "../view-state.ts";
import type { Step } from "./steps.ts";

/** What a reply is made of, in its order: texts, and between them what the agent did. */
export function blocksView({ blocks, status }: Reply, view: ViewState): unknown[] {
  const streaming = status === "streaming";
  const groups: (TextBlock | Step[])[] = [];
  for (const block of blocks) {
    const last = groups.at(-1);
    if (block.type === "text") groups.push(block);
    else if (Array.isArray(last)) last.push(block);
    else groups.push([block]);
  }
  return groups.map((group, index) => {
    const live = streaming && index === groups.length - 1;
    if (Array.isArray(group)) return view.steps(group, live);
    const text = html`<div part="markdown" class="markdown" ${markdown(group.text, live)}></div>`;
    // What is drawn once, such as a button of a code block, is drawn anew in another language.
    return keyed(strings, text);
  });
}
