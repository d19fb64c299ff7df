/** Asks the user about tool calls while the card for that is not loaded: shows everything, and needs no field. */

import { html, nothing, type TemplateResult } from "lit";
import "../i18n/add-part-texts.ts";
import { expiryOf } from "../conversations/expiry.ts";
import type { ToolBlock } from "../conversations/messages.ts";
import { partSheets } from "../styles/part-sheets.ts";
import styles from "../styles/plain-question.css";
import { ChatPart } from "./chat-part.ts";
import { Standstill } from "./controllers/standstill.ts";
import { icons } from "./icons.ts";
import { pressOnce } from "./keys.ts";
import { plain } from "./plain-text.ts";
import { toolName } from "./tool-text.ts";

/** Each string in a JSON text. They are isolated, so that right-to-left text does not reorder what is beside it. */
const TEXTS = /("(?:[^"\\]|\\[\s\S]?)*"?)/;

export class PlainQuestion extends ChatPart {
  static override readonly sheets = partSheets(styles);
  static override properties = { calls: { attribute: false }, canDecide: { attribute: false } };
  calls: readonly ToolBlock[] = [];
  /** See `ApprovalElement`. */
  canDecide = false;

  constructor() {
    super();
    new Standstill(this, ".choices button");
  }

  protected override render(): TemplateResult {
    const { strings, agent } = this.context;
    // One expired call blocks the others too, because all are decided together.
    const isExpired = this.calls.some((call) => expiryOf(call) <= Date.now());
    return html`
      <section
        part="approval"
        class="approval plain"
        tabindex="-1"
        aria-label=${strings.needsDecision(agent)}
        translate="no"
        @keydown=${pressOnce}
      >
        ${this.calls.map((call) => this.#renderCall(call, isExpired))}
        ${isExpired ? html`<p>${strings.approvalExpired}</p>` : nothing}
      </section>
    `;
  }

  #renderCall(call: ToolBlock, isExpired: boolean): TemplateResult {
    const { strings } = this.context;
    const { callId, tool, title, approval, decision } = call;
    const id = `asked-${callId}`;
    // The arguments as the call will run: the user may have changed them before a reload.
    const input = decision?.arguments ?? call.arguments;
    return html`
      <div class=${approval?.danger ? "plain-call dangerous" : "plain-call"} role="group" aria-labelledby=${id}>
        <p id=${id}><strong><bdi>${plain(approval?.text || tool)}</bdi></strong></p>
        ${title ? html`<p><bdi>${plain(toolName(call, strings))}</bdi></p>` : nothing}
        <p class="plain-input" dir="ltr">${plain(tool)} ${input.split(TEXTS).map((it) => html`<bdi>${plain(it)}</bdi>`)}</p>
        ${
          isExpired
            ? nothing
            : html`<div class="choices">${this.#renderButton(call, false)} ${approval?.question ? nothing : this.#renderButton(call, true)}</div>`
        }
      </div>
    `;
  }

  #renderButton(call: ToolBlock, approved: boolean): TemplateResult {
    const { strings, actions } = this.context;
    const { callId, title, approval, decision } = call;
    const part = approved ? "approve" : "decline";
    const isPressed = decision?.approved === approved;
    const isDanger = approved && approval?.danger;
    const press = ({ detail }: MouseEvent) => {
      // Ignores the second click of a double click.
      if (detail < 2) void actions.decide(callId, isPressed ? undefined : { approved });
    };
    return html`
      <button
        type="button"
        part=${part}
        id=${`${part}-${callId}`}
        class=${isDanger ? "small-button danger" : "small-button"}
        aria-pressed=${this.calls.length > 1 || decision ? isPressed : nothing}
        aria-labelledby=${`${part}-${callId} asked-${callId}`}
        ?disabled=${!this.canDecide}
        @click=${press}
      >
        ${isPressed ? icons.check : nothing}${isDanger && title ? plain(toolName(call, strings)) : strings[part]}
      </button>
    `;
  }
}
