import { html, nothing, type TemplateResult } from "lit";
import type { Disclosure } from "../disclosure.ts";
import { formatDuration } from "../format.ts";
import { strings } from "../strings.ts";
import type { ThinkingBlock } from "../transcript.ts";
import * as stepIcons from "./step-icons.ts";
import { stepRow } from "./step-row.ts";

/** The model's reasoning: unless page or reader decided otherwise, open while it streams and closed soon afterwards. */
export function thinkingView(block: ThinkingBlock, view: Disclosure, group: string): TemplateResult {
  const { id, text, startedAt, endedAt } = block;
  const running = endedAt === undefined;
  const mode = view.modes.thinking;
  const open = mode === "auto" ? view.isOpenWhile(id, running) : view.isOpen(id, mode === "open");
  const name = running ? strings.thinking : thoughtFor(endedAt - startedAt);
  return html`
    <section part="thinking" class="step">
      ${stepRow({ id, group, open, view, icon: stepIcons.bulb, name, running })}
      <div id=${`body-${id}`} class="step-body" ?hidden=${!open}>
        ${
          open
            ? html`<div class="thoughts" tabindex="0" role="group" aria-label=${strings.thinking}>
                <div dir="auto">${text.trim()}</div>
              </div>`
            : nothing
        }
      </div>
    </section>
  `;
}

function thoughtFor(milliseconds: number): string {
  if (milliseconds < 1000) return strings.thoughtBriefly;
  return strings.thoughtFor(formatDuration(milliseconds));
}
