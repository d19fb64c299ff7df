import { html, nothing, type TemplateResult } from "lit";
import { guard } from "lit/directives/guard.js";
import type { Disclosure } from "../disclosure.ts";
import { formatBytes, formatDuration } from "../format.ts";
import { strings } from "../strings.ts";
import type { ToolBlock } from "../transcript.ts";
import { iconButton } from "./header.ts";
import * as icons from "./icons.ts";
import * as stepIcons from "./step-icons.ts";
import { stepRow } from "./step-row.ts";
import { toolStatus } from "./tool-status.ts";

/** Shown at once of a longer text, in characters. The rest would hold up the page. */
const SHOWN_AT_ONCE = 20_000;

/** Of the arguments, in characters, in the row of a closed call. */
const HINT_CHARS = 80;

/** Nobody waits that long, and "0ms" tells nothing. */
const SHORTEST_DURATION_MS = 50;

const ICONS = {
  running: stepIcons.spinner,
  completed: icons.check,
  failed: stepIcons.cross,
  stopped: stepIcons.dash,
} as const;

export function statusIcon(status: ToolBlock["status"]): TemplateResult {
  return ICONS[status];
}

/** A tool invocation: one line, and on request its arguments and output, as text. */
export function toolView(block: ToolBlock, view: Disclosure, group: string): TemplateResult {
  const { id, tool, arguments: args, status, durationMs = 0 } = block;
  const open = view.isOpen(id, view.modes.tools === "open");
  const row = stepRow({
    id,
    group,
    open,
    view,
    icon: statusIcon(status),
    name: tool,
    // Open, the arguments themselves stand below.
    hint: open ? nothing : guard([args], () => hintOf(args)),
    running: status === "running",
    note: toolStatus(status),
    aside: durationMs < SHORTEST_DURATION_MS ? undefined : formatDuration(durationMs),
  });
  return html`
    <section part="tool" class="step" data-status=${status}>
      ${row}
      <div id=${`body-${id}`} class="step-body" ?hidden=${!open}>
        ${open ? detailsView(block, view) : nothing}
      </div>
    </section>
  `;
}

function detailsView(block: ToolBlock, view: Disclosure): TemplateResult {
  const { id, status, arguments: args, output } = block;
  const outputLabel = status === "failed" ? strings.toolError : strings.toolOutput;
  return html`
    <div class="details">
      ${args === "" ? nothing : dataView(`${id}.arguments`, strings.toolArguments, args, view)}
      ${output === undefined ? nothing : dataView(`${id}.output`, outputLabel, output, view)}
    </div>
  `;
}

function dataView(id: string, label: string, data: string, view: Disclosure): TemplateResult {
  const copied = view.isCopied(id);
  const whole = data.length <= SHOWN_AT_ONCE || view.isOpen(id, false);
  // Printed once, although the row is drawn again with each token that follows it.
  const shown = guard([data, whole, strings], () => {
    const text = prettyPrint(data);
    return whole ? text || strings.emptyOutput : `${text.slice(0, SHOWN_AT_ONCE)}…`;
  });
  return html`
    <div class="data">
      <div class="data-head">
        <span>${label}</span>
        ${iconButton(
          "copy",
          copied ? strings.copied : `${strings.copy}: ${label}`,
          copied ? icons.check : icons.copy,
          ({ currentTarget }) => view.copy(currentTarget as HTMLElement, id, prettyPrint(data)),
        )}
      </div>
      <pre dir="auto" tabindex="0" role="group" aria-label=${label}>${shown}</pre>
      ${
        whole
          ? nothing
          : html`<button type="button" class="small-button" @click=${() => view.toggle(id, false)}>
              ${strings.showAll(formatBytes(data.length))}
            </button>`
      }
    </div>
  `;
}

/** What tells a call from others of its tool: the words and numbers in its arguments, on one line. */
export function hintOf(args: string): string {
  const words: string[] = [];
  const gather = (value: unknown) => {
    if (typeof value === "object" && value !== null) Object.values(value).forEach(gather);
    else if (typeof value === "string" || typeof value === "number") words.push(String(value));
  };
  try {
    gather(args.length > SHOWN_AT_ONCE ? args : JSON.parse(args));
  } catch {
    words.push(args);
  }
  const text = words.join(", ").replace(/\s+/g, " ").trim();
  if (text.length <= HINT_CHARS) return text;
  // Not through the middle of a character.
  return `${text.slice(0, HINT_CHARS).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

/** JSON with line breaks; any other text as it is. */
export function prettyPrint(text: string): string {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // It only looked like JSON.
    return text;
  }
}
