import { html, nothing, type TemplateResult } from "lit";
import type { Disclosure } from "../disclosure.ts";
import { strings } from "../strings.ts";
import type { ThinkingBlock, ToolBlock } from "../transcript.ts";
import { stepRow } from "./step-row.ts";
import { thinkingView } from "./thinking.ts";
import { statusIcon, toolView } from "./tool.ts";

export type Step = ThinkingBlock | ToolBlock;

/** From so many on, steps in a row fold into one line when they are over. */
const FOLDED_FROM = 3;

/**
 * What the agent did before it spoke. `live` while another step may follow.
 *
 * The rows keep their elements when the line above them comes, and with them the focus.
 */
export function stepsView(steps: readonly Step[], live: boolean, view: Disclosure): TemplateResult {
  const folds = steps.length >= FOLDED_FROM;
  const id = `${steps[0]?.id}.steps`;
  // Asked in any case, so that a group which folds with its last step does so a moment later.
  const closesLater = view.isOpenWhile(id, live) || !folds;
  // What the page wants to be seen is not folded away.
  const wanted = steps.some(({ type }) => view.modes[type === "tool" ? "tools" : "thinking"] === "open");
  const open = wanted ? view.isOpen(id, true) || !folds : closesLater;
  const tools = steps.filter((step) => step.type === "tool");
  const failures = tools.filter(({ status }) => status === "failed").length;
  // An agent that went on after a failure has coped with it: how the last call ended is how the group did.
  const status = live ? "running" : (tools.at(-1)?.status ?? "completed");
  const rows = steps.map((step) => (step.type === "tool" ? toolView(step, view, id) : thinkingView(step, view, id)));
  return html`
    <div part="steps" class=${folds ? "steps folds" : "steps"} data-status=${status}>
      ${
        folds
          ? stepRow({
              id,
              open,
              view,
              icon: statusIcon(status),
              name: strings.steps(steps.length),
              aside: failures > 0 ? strings.stepsFailed(failures) : undefined,
            })
          : nothing
      }
      <div id=${`body-${id}`} class="steps-body" ?hidden=${!open}>${rows}</div>
    </div>
  `;
}
