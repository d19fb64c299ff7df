/** The card that asks the user about tool calls. Loaded with the first call that waits. */

import { html, nothing, type PropertyValues, type TemplateResult } from "lit";
import "../i18n/add-part-texts.ts";
import { expiryOf } from "../conversations/expiry.ts";
import type { ToolBlock } from "../conversations/messages.ts";
import { formatBytes } from "../i18n/format.ts";
import type { Strings } from "../i18n/strings.ts";
import { lazy } from "../loading/lazy.ts";
import styles from "../styles/approval.css";
import { partSheets } from "../styles/part-sheets.ts";
import type { ArgumentFields } from "./argument-fields.ts";
import { isObject, labelOf, parse, wordsOf } from "./argument-values.ts";
import { ChatPart, definePart } from "./chat-part.ts";
import { Standstill } from "./controllers/standstill.ts";
import { hasTouchKeyboard, smallButton } from "./controls.ts";
import { beginningOf, type Folded, folded } from "./folded-text.ts";
import { icon, icons } from "./icons.ts";
import { isTaken, pressOnce } from "./keys.ts";
import { plain } from "./plain-text.ts";
import { toolName } from "./tool-text.ts";

export { transcribeCall as transcribe } from "./tool-text.ts";

const warning = icon("M12 4.5L20.5 19.5h-17zM12 10v4.2m0 2.4v.1");
const dots = icon("M6 11.9h.1m5.8 0h.1m5.8 0h.1");

const fields = lazy(() => import("./argument-fields.ts"), "ArgumentFields");
const FIELDS = "agent-chat-argument-fields";

/** Of longer values (in characters), and of more values, only the beginning is shown. */
const LONG_VALUE = 300;
const MANY_VALUES = 20;

/** Longer names of values (in characters) are cut as well. */
const LONG_LABEL = 80;

/** Levels of objects that are laid out. Deeper ones, or those with long names, which each row repeats, are JSON. */
const DEEPEST = 3;

/** The longest reason, and the longest answer, in characters. */
const MAX_REASON = 500;
const MAX_ANSWER = 1_000;

/** The longest timer. A call that expires later is checked again after it. */
const MAX_TIMEOUT_MS = 3_600_000;

/** Ids of calls sent from this page with changed arguments: if the server refuses those, a field gets the focus. */
const sent = new Set<string>();

/** The waiting calls of an answer, each with what it would do and its buttons. The last decision sends all of them. */
export class ApprovalElement extends ChatPart {
  static override readonly sheets = partSheets(styles);
  static override properties = {
    calls: { attribute: false },
    canDecide: { attribute: false },
    declining: { state: true },
  };
  calls: readonly ToolBlock[] = [];
  /** Whether decisions can be sent: the run that asks has ended, and no other one has begun. */
  canDecide = false;
  /** Id of the call that is about to be declined. */
  private declining: string | undefined;
  /** Ids of the calls whose arguments are being changed. */
  readonly #changing = new Set<string>();
  /** Ids of the calls whose arguments are shown as the tool gets them. */
  readonly #detailed = new Set<string>();
  /** Values (or calls) shown in full, by key. `true`: not at the user's request, so they are asked to check them. */
  readonly #whole = new Map<string, boolean>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    super();
    new Standstill(this, ".choices button:not(.tools *, [part=cancel-decline])");
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    clearTimeout(this.#timer);
  }

  protected override willUpdate(changed: PropertyValues): void {
    if (!changed.has("calls")) return;
    const before: readonly ToolBlock[] = changed.get("calls") ?? [];
    for (const { callId, refused, decidedAt } of this.calls) {
      const isSeen = before.some((it) => it.callId === callId && it.decidedAt === decidedAt);
      // Refused values are shown in fields, to be corrected rather than typed again.
      if (refused !== undefined && !isSeen) void this.#change(callId, sent.delete(callId));
    }
  }

  protected override updated(changed: PropertyValues): void {
    clearTimeout(this.#timer);
    if (!this.#isExpired) {
      const left = Math.min(...this.calls.map(expiryOf)) - Date.now();
      this.#timer = setTimeout(() => this.requestUpdate(), Math.min(left + 1, MAX_TIMEOUT_MS));
    }
    if (changed.has("declining") && this.declining !== undefined) this.#reasonOf(this.declining)?.focus();
  }

  /** Whether any call has expired: that blocks the others too, because all are decided together. */
  get #isExpired(): boolean {
    return this.calls.some((call) => expiryOf(call) <= Date.now());
  }

  protected override render(): TemplateResult {
    const { strings, agent } = this.context;
    const { calls } = this;
    const isExpired = this.#isExpired;
    // Dangerous calls and questions have only buttons of their own.
    const hasAll = calls.length > 1 && !calls.some(({ approval }) => approval?.danger || approval?.question);
    return html`
      <section
        part="approval"
        class=${isExpired ? "approval expired" : "approval"}
        tabindex="-1"
        aria-label=${strings.needsDecision(agent)}
        translate="no"
        @keydown=${pressOnce}
      >
        ${calls.map((call) => this.#renderCall(call, isExpired))}
        ${isExpired ? this.#renderExpired() : hasAll ? this.#renderAll() : nothing}
      </section>
    `;
  }

  #renderCall(call: ToolBlock, isExpired: boolean): TemplateResult {
    const { strings } = this.context;
    const { callId, tool, approval } = call;
    const id = `asked-${callId}`;
    const danger = approval?.danger ? html`<p class="danger-note">${warning}${strings.cannotBeUndone}</p>` : nothing;
    return html`
      <div class=${approval?.danger ? "asked dangerous" : "asked"} role="group" aria-labelledby=${id}>
        ${danger}
        <p class="question"><bdi id=${id}>${folded(approval?.text || tool, strings)}</bdi></p>
        ${
          this.#isChanging(callId)
            ? html`<agent-chat-argument-fields .context=${this.context} .call=${call}></agent-chat-argument-fields>`
            : this.#renderValues(call)
        }
        ${
          this.#detailed.has(callId)
            ? html`<pre dir="ltr" tabindex="0" role="group" aria-label=${strings.toolArguments}>${folded(`${tool} ${formatJson(shownArguments(call))}`, strings)}</pre>`
            : nothing
        }
        ${isExpired ? nothing : this.#renderChoices(call, id)}
      </div>
    `;
  }

  #renderValues(call: ToolBlock): TemplateResult | typeof nothing {
    const { strings } = this.context;
    const { shown, more } = this.#rowsOf(call);
    if (shown.length === 0) return nothing;
    return html`<dl>
        ${shown.map(
          ({ key, label, value, size }) => html`
            <dt><bdi>${label}</bdi></dt>
            <dd>
              <bdi>${value}</bdi>
              ${size === undefined ? nothing : this.#renderMore(strings.showAll(size), key)}
              ${this.#whole.get(key) ? this.#renderCheck() : nothing}
            </dd>
          `,
        )}
      </dl>
      ${more === undefined ? nothing : this.#renderMore(strings.showAllRows(more), call.callId)}
      ${this.#whole.get(call.callId) ? this.#renderCheck() : nothing}`;
  }

  #renderMore(text: string, key: string): TemplateResult {
    return html`<button type="button" class="small-button more" @click=${() => this.#showWhole([key])}>${text}</button>`;
  }

  #renderCheck(): TemplateResult {
    return html`<span class="wrong" role="alert">${this.context.strings.checkValue}</span>`;
  }

  /** The values of a call as shown, with `size` if cut. `more`: the number of all values if some are left out. */
  #rowsOf(call: ToolBlock): { shown: readonly ShownRow[]; more: number | undefined } {
    const { strings } = this.context;
    const rows = rowsOf(shownArguments(call), strings);
    const isAll = rows.length <= MANY_VALUES || this.#whole.has(call.callId);
    const shown = (isAll ? rows : rows.slice(0, MANY_VALUES)).map((row, index) => {
      const key = `${call.callId} ${index}`;
      if (this.#whole.has(key)) return { key, label: folded(row.label, strings), value: folded(row.value, strings) };
      const [label, isLabelCut] = beginningOf(row.label, LONG_LABEL, strings);
      const [value, isValueCut] = beginningOf(row.value, LONG_VALUE, strings);
      const size = isLabelCut || isValueCut ? formatBytes(row.value.length, strings.lang) : undefined;
      return { key, label, value, size };
    });
    return { shown, more: isAll ? undefined : rows.length };
  }

  /** Shows in full what is cut, as nothing may be approved unseen. Returns whether anything was cut. */
  #openCut(calls: readonly ToolBlock[]): boolean {
    const keys = calls
      .filter(({ callId }) => !this.#isChanging(callId))
      .flatMap((call) => {
        const { shown, more } = this.#rowsOf(call);
        const cut = shown.filter(({ size }) => size !== undefined).map(({ key }) => key);
        return more === undefined ? cut : [...cut, call.callId];
      });
    this.#showWhole(keys, true);
    return keys.length > 0;
  }

  /** The buttons that edit the arguments and show them as JSON. */
  #renderTools(call: ToolBlock, id: string): TemplateResult {
    const { strings } = this.context;
    const { callId, approval, decision } = call;
    const value = approval?.editable && !decision ? parse(call.arguments) : undefined;
    const canChange = isObject(value) && (approval?.schema !== undefined || Object.keys(value).length > 0);
    const isDetailed = this.#detailed.has(callId);
    const showDetails = () => {
      this.context.actions.holdScroll();
      if (!this.#detailed.delete(callId)) this.#detailed.add(callId);
      this.requestUpdate();
    };
    return html`<div class="tools">
      ${
        canChange
          ? html`<button
              type="button"
              part="edit-arguments"
              title=${strings.change}
              id=${`change-${callId}`}
              class="small-button"
              aria-pressed=${this.#isChanging(callId)}
              aria-labelledby=${`change-${callId} ${id}`}
              ?disabled=${!this.canDecide}
              @click=${() => this.#toggleChange(callId)}
            >
              ${icons.edit}<span>${strings.change}</span>
            </button>`
          : nothing
      }
      <button
        type="button"
        part="show-arguments"
        class="icon-button"
        aria-label=${strings.details}
        title=${strings.details}
        aria-expanded=${isDetailed}
        @click=${showDetails}
      >
        ${dots}
      </button>
    </div>`;
  }

  /** A text field in the card: for the answer to a question, or the optional reason for declining. */
  #renderReason(call: ToolBlock): TemplateResult {
    const { whyDeclined, yourAnswer } = this.context.strings;
    const isQuestion = call.approval?.question === true;
    const label = isQuestion ? yourAnswer : whyDeclined;
    return html`<input
      class="reason field"
      id=${`reason-${call.callId}`}
      dir="auto"
      maxlength=${isQuestion ? MAX_ANSWER : MAX_REASON}
      aria-label=${label}
      placeholder=${label}
      @keydown=${(event: KeyboardEvent) => this.#reasonKey(event, call)}
    />`;
  }

  #renderChoices(call: ToolBlock, id: string): TemplateResult {
    const { strings } = this.context;
    const { approval, decision, callId } = call;
    const isOne = this.calls.length === 1;
    // The decision on a single call is shown as well: other calls, drawn by the page, may still need one.
    const pressed = (approved: boolean) => (isOne && !decision ? nothing : decision?.approved === approved);
    const isDeclining = this.declining === callId;
    const filled = decision ? "" : " filled";
    return html`
      <div class="choices">
        ${isDeclining ? nothing : this.#renderTools(call, id)}
        ${approval?.question || isDeclining ? this.#renderReason(call) : nothing}
        <div class="decisions">
        ${isDeclining ? smallButton("cancel-decline", strings.back, () => this.#leaveDecline()) : nothing}
        <button
          type="button"
          part="decline"
          id=${`decline-${callId}`}
          class=${isDeclining ? "small-button filled" : "small-button"}
          aria-pressed=${pressed(false)}
          aria-labelledby=${`decline-${callId} ${id}`}
          ?disabled=${!this.canDecide}
          @click=${(event: MouseEvent) => this.#pressDecline(call, event)}
        >
          ${decision && !decision.approved ? icons.check : nothing}${strings.decline}${
            // The ellipsis says that a reason can be given next.
            approval?.question || decision?.approved === false || isDeclining ? nothing : "…"
          }
        </button>
        ${
          isDeclining
            ? nothing
            : html`<button
                type="button"
                part="approve"
                id=${`approve-${callId}`}
                class=${`small-button${filled}${approval?.danger ? " danger" : ""}`}
                aria-pressed=${pressed(true)}
                aria-labelledby=${`approve-${callId} ${id}`}
                aria-description=${approval?.danger ? strings.cannotBeUndone : nothing}
                ?disabled=${!this.canDecide}
                @click=${(event: MouseEvent) => this.#pressApprove(call, event)}
              >
                ${decision?.approved ? icons.check : nothing}${this.#nameOfYes(call)}
              </button>`
        }
        </div>
      </div>
    `;
  }

  #nameOfYes(call: ToolBlock): string {
    const { strings } = this.context;
    if (call.approval?.question) return strings.answer;
    return call.approval?.danger && call.title ? plain(toolName(call, strings)) : strings.approve;
  }

  #renderAll(): TemplateResult {
    return html`
      <div class="choices all">
        <button
          type="button"
          part="approve-all"
          class="small-button"
          ?disabled=${!this.canDecide}
          @click=${this.#approveAll}
        >
          ${this.context.strings.approveAll}
        </button>
      </div>
    `;
  }

  #renderExpired(): TemplateResult {
    const { strings, actions } = this.context;
    const ask = () => void actions.send({ text: strings.pleaseAskAgain, attachments: [], files: [] });
    return html`
      <div class="choices too-late">
        <p>${strings.approvalExpired}</p>
        <button type="button" part="ask-me-again" class="small-button" ?disabled=${!this.canDecide} @click=${ask}>
          ${strings.askMeAgain}
        </button>
      </div>
    `;
  }

  /** Ignores the second click of a double click. */
  #pressApprove(call: ToolBlock, { detail }: MouseEvent): void {
    if (detail > 1) return;
    if (!call.decision?.approved && this.#openCut([call])) return;
    if (call.approval?.question && !call.decision?.approved) {
      this.#answer(call);
      return;
    }
    const [changed] = this.#readAll([call]) ?? [];
    if (changed) this.#decide(call, call.decision?.approved ? undefined : { approved: true, ...changed });
  }

  #pressDecline(call: ToolBlock, { detail }: MouseEvent): void {
    if (detail > 1) return;
    const { callId, approval, decision } = call;
    if (decision && !decision.approved) this.#decide(call, undefined);
    else if (this.declining === callId || approval?.question) this.#decline(call);
    else {
      this.context.actions.holdScroll();
      this.declining = callId;
    }
  }

  /** Approves a question with the typed answer. Without one, focuses its field. */
  #answer(call: ToolBlock): void {
    const field = this.#reasonOf(call.callId);
    const reason = field?.value.trim();
    if (reason) this.#decide(call, { approved: true, reason });
    else field?.focus();
  }

  #reasonOf(callId: string): HTMLInputElement | undefined {
    return [...this.querySelectorAll<HTMLInputElement>(".reason")].find(({ id }) => id === `reason-${callId}`);
  }

  #decline(call: ToolBlock): void {
    // The field of a question holds its answer, not a reason.
    const reason = call.approval?.question ? undefined : this.#reasonOf(call.callId)?.value.trim();
    this.declining = undefined;
    this.#decide(call, { approved: false, ...(reason && { reason }) });
  }

  #decide({ callId }: ToolBlock, decision: ToolBlock["decision"]): void {
    if (decision) this.#changing.delete(callId);
    if (decision?.arguments !== undefined) sent.add(callId);
    void this.context.actions.decide(callId, decision);
  }

  readonly #approveAll = ({ detail }: MouseEvent): void => {
    if (detail > 1) return;
    // Calls that already have a decision keep it.
    const open = this.calls.filter(({ decision }) => !decision);
    if (this.#openCut(open)) return;
    const changed = this.#readAll(open);
    if (changed) this.declining = undefined;
    for (const [index, call] of changed ? open.entries() : []) {
      this.#decide(call, { approved: true, ...changed?.[index] });
    }
  };

  /** The changed arguments of each call; `undefined` if some are invalid, the first of which gets the focus. */
  #readAll(calls: readonly ToolBlock[]): readonly { readonly arguments?: string }[] | undefined {
    const fieldsOf = calls.map(({ callId }) => this.#fieldsOf(callId));
    const read = fieldsOf.map((own) => (own ? own.read() : {}));
    const wrong = fieldsOf[read.indexOf(undefined)];
    void wrong?.focusField();
    return wrong ? undefined : read.filter((it) => it !== undefined);
  }

  #reasonKey(event: KeyboardEvent, call: ToolBlock): void {
    if (isTaken(event) || event.repeat || !/^(Enter|Escape)$/.test(event.key)) return;
    const isQuestion = call.approval?.question === true;
    if (isQuestion && event.key === "Escape") return;
    // Escape only closes the field: it neither closes the panel around the chat nor stops an answer.
    event.preventDefault();
    if (event.key === "Enter" && isQuestion) this.#answer(call);
    else if (event.key === "Enter") this.#decline(call);
    else this.#leaveDecline();
  }

  /** Closes the field for the reason, and returns the focus to the decline button. */
  #leaveDecline(): void {
    const id = `decline-${this.declining}`;
    const buttons = [...this.querySelectorAll<HTMLElement>('[part="decline"]')];
    buttons.find((button) => button.id === id)?.focus({ preventScroll: true });
    this.declining = undefined;
  }

  #isChanging(callId: string): boolean {
    return this.#changing.has(callId) && customElements.get(FIELDS) !== undefined;
  }

  #toggleChange(callId: string): void {
    this.context.actions.holdScroll();
    if (this.#changing.delete(callId)) this.requestUpdate();
    else void this.#change(callId, !hasTouchKeyboard());
  }

  /** Turns the values of a call into fields. `isFocused`: the first invalid one, else the first, gets the focus. */
  async #change(callId: string, isFocused: boolean): Promise<void> {
    this.#changing.add(callId);
    const module = await fields.loadEventually();
    if (!module) return;
    definePart(FIELDS, module.ArgumentFields);
    this.requestUpdate();
    await this.updateComplete;
    if (isFocused) this.#fieldsOf(callId)?.focusField();
  }

  #fieldsOf(callId: string): ArgumentFields | undefined {
    return [...this.querySelectorAll<ArgumentFields>(FIELDS)].find(({ call }) => call.callId === callId);
  }

  #showWhole(keys: readonly string[], isUnasked = false): void {
    this.context.actions.holdScroll();
    for (const key of keys) this.#whole.set(key, isUnasked);
    this.requestUpdate();
  }
}

/** The arguments, as changed by the user if they were. */
function shownArguments({ arguments: input, decision }: ToolBlock): string {
  return decision?.arguments ?? input;
}

interface Row {
  readonly label: string;
  readonly value: string;
}

interface ShownRow {
  readonly key: string;
  readonly label: Folded;
  readonly value: Folded;
  /** Size of the whole value; present if the value or its label is cut. */
  readonly size?: string | undefined;
}

/** The arguments in readable form: every value with a label. */
function rowsOf(json: string, strings: Strings): Row[] {
  const value = parse(json);
  if (!isObject(value)) return json.trim() === "" ? [] : [{ label: strings.toolArguments, value: json }];
  return rowsIn(value, "", strings, 1);
}

function rowsIn(value: object, before: string, strings: Strings, depth: number): Row[] {
  return Object.entries(value).flatMap(([name, inner]) => {
    const own = Array.isArray(value) ? `${Number(name) + 1}` : labelOf(name);
    const label = before ? `${before} › ${own}` : own;
    if (Array.isArray(inner) && inner.length > 0 && !inner.some(isObject)) {
      return [{ label, value: inner.map((it) => wordsOf(it, strings)).join(", ") }];
    }
    const isLaidOut = depth < DEEPEST && label.length <= LONG_LABEL;
    if (isLaidOut && isObject(inner) && wordsOf(inner, strings) !== "–") {
      return rowsIn(inner, label, strings, depth + 1);
    }
    return [{ label, value: wordsOf(inner, strings) }];
  });
}

function formatJson(json: string): string {
  const value = parse(json);
  return value === undefined ? json : JSON.stringify(value, null, 2);
}
