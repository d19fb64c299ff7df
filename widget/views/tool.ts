import { html, nothing, type TemplateResult } from "lit";
import { formatDuration } from "../format.ts";
import { strings } from "../strings.ts";
import type { ToolBlock } from "../transcript.ts";
import type { ViewState } from "../view-state.ts";
import { iconButton } from "./header.ts";
import * as icons from "./icons.ts";

const STATUS = {
  running: { icon: icons.spinner, label: "toolRunning" },
  completed: { icon: icons.check, label: "toolCompleted" },
  failed: { icon: icons.cross, label: "toolFailed" },
  stopped: { icon: icons.dash, label: "toolStopped" },
} as const;

/** A tool invocation: one line, and on request its arguments and output, as text. */
export function toolView(block: ToolBlock, view: ViewState): TemplateResult {
  const { id, tool, status, durationMs } = block;
  const open = view.isOpen(id, false);
  const { icon, label } = STATUS[status];
  return html`
    <section part="tool" class="step" data-status=${status}>
      <button
        type="button"
        class="step-row"
        aria-expanded=${open}
        aria-controls=${`body-${id}`}
        @click=${() => view.toggle(id, open)}
      >
        <span class="step-icon">${icon}</span>
        <span class=${status === "running" ? "step-name shimmer" : "step-name"}>${tool}</span>
        <span class="visually-hidden">${strings[label]}</span>
        ${
          durationMs === undefined
            ? nothing
            : html`<span class="duration">${formatDuration(durationMs)}</span>`
        }
        <span class="chevron">${icons.chevron}</span>
      </button>
      <div id=${`body-${id}`} class="step-body" ?hidden=${!open}>
        ${open ? detailsView(block, view) : nothing}
      </div>
    </section>
  `;
}

function detailsView(block: ToolBlock, view: ViewState): TemplateResult {
  const { id, arguments: args, output, status } = block;
  const outputLabel = status === "failed" ? strings.toolError : strings.toolOutput;
  return html`
    <div class="details">
      ${args === "" ? nothing : dataView(`${id}.arguments`, strings.toolArguments, args, view)}
      ${output === undefined ? nothing : dataView(`${id}.output`, outputLabel, output, view)}
    </div>
  `;
}

function dataView(id: string, label: string, data: string, view: ViewState): TemplateResult {
  const text = prettyPrint(data);
  const copied = view.isCopied(id);
  return html`
    <div class="data">
      <div class="data-head">
        <span>${label}</span>
        ${iconButton(
          "copy",
          copied ? strings.copied : `${strings.copy}: ${label}`,
          copied ? icons.check : icons.copy,
          () => view.copy(id, text),
        )}
      </div>
      <pre tabindex="0" role="group" aria-label=${label}>${text === "" ? strings.emptyOutput : text}</pre>
    </div>
  `;
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
