/** The details of a tool call. Its data is shown as text, whatever it holds. */

import { html, nothing, type TemplateResult } from "lit";
import { guard } from "lit/directives/guard.js";
import { formatBytes } from "../i18n/format.ts";
import type { Strings } from "../i18n/strings.ts";
import { copyText } from "../markdown/clipboard.ts";
import type { ToolBlock, ToolStatus } from "../session/messages.ts";
import { iconButton } from "./buttons.ts";
import type { ChatContext } from "./chat-part.ts";
import type { Copier } from "./controllers/copier.ts";
import { icons } from "./icons.ts";

/** Shown at once of a longer text, in characters. The rest would hold up the page. */
const SHOWN_AT_ONCE = 20_000;

/** Of the arguments, in characters, in the row of a closed call. */
const HINT_CHARACTERS = 80;

export function statusIcon(status: ToolStatus): TemplateResult {
  const { spinner, check, cross, dash } = icons;
  return { running: spinner, completed: check, failed: cross, stopped: dash, waiting: dash }[status];
}

/** The status of a tool call in words. */
export function toolStatus(status: ToolStatus, strings: Strings): string {
  const { toolRunning, toolCompleted, toolFailed, toolStopped, toolWaiting } = strings;
  return {
    running: toolRunning,
    completed: toolCompleted,
    failed: toolFailed,
    stopped: toolStopped,
    waiting: toolWaiting,
  }[status];
}

/** The element around the details, as they need it. */
interface DetailsHost {
  readonly copier: Copier;
  /** Of the call within its element. */
  readonly key: string;
  /** Whether all of a long text is shown. */
  readonly isWhole: (name: string) => boolean;
  readonly showAll: (name: string) => void;
}

/** The arguments and the output of a call. */
export function renderDetails(call: ToolBlock, context: ChatContext, host: DetailsHost): TemplateResult {
  const { strings } = context;
  const { status, arguments: input, output } = call;
  const outputLabel = status === "failed" ? strings.toolError : strings.toolOutput;
  return html`
    <div class="details">
      ${input === "" ? nothing : renderData("arguments", strings.toolArguments, input, context, host)}
      ${output === undefined ? nothing : renderData("output", outputLabel, output, context, host)}
    </div>
  `;
}

function renderData(
  name: string,
  label: string,
  data: string,
  context: ChatContext,
  host: DetailsHost,
): TemplateResult {
  const { strings, actions } = context;
  const copyKey = `${host.key}.${name}`;
  const isCopied = host.copier.isCopied(copyKey);
  const isWhole = data.length <= SHOWN_AT_ONCE || host.isWhole(name);
  // Formatted once, although the row is drawn again with each token of a thought that follows it.
  const text = guard([data, isWhole, strings], () => {
    const formatted = formatData(data);
    return isWhole ? formatted || strings.emptyOutput : `${formatted.slice(0, SHOWN_AT_ONCE)}…`;
  });
  const copy = async ({ currentTarget }: MouseEvent) => {
    const copying = copyText(formatData(data), currentTarget as HTMLElement);
    if (!(await host.copier.copy(copyKey, copying))) actions.alert(strings.copyFailed);
  };
  return html`
    <div class="data">
      <div class="data-head">
        <span>${label}</span>
        ${iconButton({
          part: "copy",
          label: isCopied ? strings.copied : `${strings.copy}: ${label}`,
          icon: isCopied ? icons.check : icons.copy,
          onClick: copy,
        })}
      </div>
      <pre dir="auto" tabindex="0" role="group" aria-label=${label}>${text}</pre>
      ${
        isWhole
          ? nothing
          : html`<button type="button" class="small-button" @click=${() => host.showAll(name)}>
              ${strings.showAll(formatBytes(data.length, strings.lang))}
            </button>`
      }
    </div>
  `;
}

/** Distinguishes a call from others of its tool: the words and numbers of its arguments, in one row. */
export function hintOf(input: string): string {
  const words: string[] = [];
  const gather = (value: unknown) => {
    if (typeof value === "object" && value !== null) Object.values(value).forEach(gather);
    else if (typeof value === "string" || typeof value === "number") words.push(String(value));
  };
  try {
    gather(input.length > SHOWN_AT_ONCE ? input : JSON.parse(input));
  } catch {
    words.push(input);
  }
  const text = words.join(", ").replace(/\s+/g, " ").trim();
  if (text.length <= HINT_CHARACTERS) return text;
  // Not through the middle of a character.
  return `${text.slice(0, HINT_CHARACTERS).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

/** JSON with line breaks; any other text as it is. */
export function formatData(text: string): string {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // It only looked like JSON.
    return text;
  }
}
