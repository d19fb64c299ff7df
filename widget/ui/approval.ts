/** The card that asks the person about tool calls. Loaded with the first call that waits. */

import { html, nothing, type PropertyValues, type TemplateResult } from "lit";
import "../i18n/add-part-texts.ts";
import { expiryOf } from "../conversations/expiry.ts";
import type { ToolBlock } from "../conversations/messages.ts";
import { formatBytes } from "../i18n/format.ts";
import type { Strings } from "../i18n/strings.ts";
import styles from "../styles/approval.css";
import { partSheets } from "../styles/part-sheets.ts";
import { ChatPart } from "./chat-part.ts";
import { Standstill } from "./controllers/standstill.ts";
import { beginningOf, type Folded, folded, hasFolds } from "./folded-text.ts";
import { icon, icons } from "./icons.ts";
import { isTaken, pressOnce } from "./keys.ts";
import { plain, readBack, writtenOut } from "./plain-text.ts";
import { toolName } from "./tool-text.ts";

export { transcribeCall as transcribe } from "./tool-text.ts";

const hand = icon(
  "M8 12.5V6.3a1.4 1.4 0 0 1 2.8 0V11m0-.5V4.8a1.4 1.4 0 0 1 2.8 0V11m0-.3V6.1a1.4 1.4 0 0 1 2.8 0v6m0-2.5a1.4 1.4 0 0 1 2.8 0V15a5.8 5.8 0 0 1-5.8 5.8h-.9a6 6 0 0 1-4.9-2.5L4.4 14a1.5 1.5 0 0 1 2.3-1.9L8 13.5",
);

/** Longer values are shown by their beginning, and so are more values. */
const LONG_VALUE = 300;
const MANY_VALUES = 20;

/** Longer names of values are shown by their beginning, too. */
const LONG_LABEL = 80;

/** A longer text, or one with line breaks, is changed in a field of several lines: a phone would hide its end. */
const LONG_TEXT = 20;

/** Objects in objects are laid out so deep; what is deeper, or has a long name, which each row would repeat, is shown as JSON. */
const DEEPEST = 3;

/** The longest reason, and the longest answer, in characters. */
const MAX_REASON = 500;
const MAX_ANSWER = 1_000;

/** Timers take no more. A call that expires later is looked at again. */
const MAX_TIMEOUT_MS = 3_600_000;

/** What the person has typed in place of the arguments, by their names. */
type Edits = Map<string, string | boolean>;

/** The calls of an answer that wait, each with what it would do and the buttons that decide. The last decision sends all. */
export class ApprovalElement extends ChatPart {
  static override readonly sheets = partSheets(styles);
  static override properties = {
    calls: { attribute: false },
    canDecide: { attribute: false },
    declining: { state: true },
    wrong: { state: true },
  };
  calls: readonly ToolBlock[] = [];
  /** Whether decisions can be sent: the run that asks has ended, and no other one has begun. */
  canDecide = false;
  /** Id of the call that is about to be declined. */
  private declining: string | undefined;
  /** Names of the fields whose values do not fit. */
  private wrong: readonly string[] = [];
  /** By id of the call; present while its arguments are being changed. */
  readonly #edits = new Map<string, Edits>();
  /** What is shown to its end, by call and place, and whether that was not asked for: then the person is asked to look at it. */
  readonly #whole = new Map<string, boolean>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    super();
    new Standstill(this, ".choices button");
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    clearTimeout(this.#timer);
  }

  protected override willUpdate(changed: PropertyValues): void {
    if (!changed.has("calls")) return;
    const before: readonly ToolBlock[] = changed.get("calls") ?? [];
    for (const { callId, arguments: input, refused, decidedAt } of this.calls) {
      const isSeen = before.some((it) => it.callId === callId && it.decidedAt === decidedAt);
      if (refused === undefined || isSeen) continue;
      // They are corrected, not typed anew.
      const asked = Object.fromEntries(entriesOf(input).map(([name, value]) => [name, textOf(value)]));
      const differing = entriesOf(refused).filter(([name, value]) => textOf(value) !== asked[name]);
      const edits = differing.map(
        ([name, value]) => [name, typeof value === "boolean" ? value : textOf(value)] as const,
      );
      this.#edits.set(callId, new Map(edits));
    }
  }

  protected override updated(changed: PropertyValues): void {
    clearTimeout(this.#timer);
    if (!this.#isExpired) {
      const left = Math.min(...this.calls.map(expiryOf)) - Date.now();
      this.#timer = setTimeout(() => this.requestUpdate(), Math.min(left + 1, MAX_TIMEOUT_MS));
    }
    if (changed.has("declining") && this.declining !== undefined) this.#reasonOf(this.declining)?.focus();
    if (changed.has("wrong")) this.querySelector<HTMLElement>("[aria-invalid='true']")?.focus();
  }

  /** One that has expired holds up the others, which are decided together. */
  get #isExpired(): boolean {
    return this.calls.some((call) => expiryOf(call) <= Date.now());
  }

  protected override render(): TemplateResult {
    const { strings, agent } = this.context;
    const { calls } = this;
    const isExpired = this.#isExpired;
    // What cannot be undone, or wants words, has its own button only.
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
    const isChanged = this.#edits.has(callId);
    return html`
      <div class=${approval?.danger ? "asked dangerous" : "asked"} role="group" aria-labelledby=${id}>
        <p class="question">${hand}<bdi id=${id}>${folded(approval?.text || tool, strings)}</bdi></p>
        ${isChanged ? this.#renderFields(call) : this.#renderValues(call)}
        ${approval?.editable && !call.decision && !isExpired ? this.#renderChange(call, id) : nothing}
        <details>
          <summary>${strings.details}</summary>
          <pre dir="ltr" tabindex="0" role="group" aria-label=${strings.toolArguments}>${folded(`${tool} ${formatJson(shownArguments(call))}`, strings)}</pre>
        </details>
        ${isExpired ? nothing : this.#renderButtons(call, id)}
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

  /** The values of a call as they are shown, what is cut of them, and how many there are if not all are shown. */
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

  /** Nothing is approved that was not opened. Returns whether something was cut, which is shown whole now. */
  #openCut(calls: readonly ToolBlock[]): boolean {
    const keys = calls
      .filter(({ callId }) => !this.#edits.has(callId))
      .flatMap((call) => {
        const { shown, more } = this.#rowsOf(call);
        const cut = shown.filter(({ size }) => size !== undefined).map(({ key }) => key);
        return more === undefined ? cut : [...cut, call.callId];
      });
    this.#showWhole(keys, true);
    return keys.length > 0;
  }

  #renderChange({ callId, arguments: input }: ToolBlock, id: string): TemplateResult | typeof nothing {
    if (entriesOf(input).length === 0) return nothing;
    return html`
      <button
        type="button"
        part="edit-arguments"
        id=${`change-${callId}`}
        class="small-button change"
        aria-pressed=${this.#edits.has(callId)}
        aria-labelledby=${`change-${callId} ${id}`}
        ?disabled=${!this.canDecide}
        @click=${() => this.#toggleEdit(callId)}
      >
        ${icons.edit}${this.context.strings.change}
      </button>
    `;
  }

  /** A field for each argument, of the kind that its value has; for what is made of others, its JSON. */
  #renderFields(call: ToolBlock): TemplateResult {
    const { strings } = this.context;
    const { callId } = call;
    const edits = this.#edits.get(callId);
    return html`<div class="fields">
      ${entriesOf(call.arguments).map(([name, value]) => {
        const key = `${callId} ${name}`;
        const isWrong = this.wrong.includes(key);
        const raw = String(edits?.get(name) ?? textOf(value));
        const text = writtenOut(raw);
        const isFolded = hasFolds(raw);
        const input = ({ currentTarget }: Event) => {
          const field = currentTarget as HTMLInputElement;
          const typed = text === raw ? field.value : readBack(field.value);
          edits?.set(name, field.type === "checkbox" ? field.checked : typed);
          if (isFolded || hasFolds(typed)) this.requestUpdate();
        };
        // What is typed does not change the field under the hands.
        const isLong = typeof value === "object" || textOf(value).length > LONG_TEXT || textOf(value).includes("\n");
        return html`
          <label>
            <bdi>${folded(labelOf(name), strings)}</bdi>
            ${isFolded ? html`<bdi class="as-read">${folded(raw, strings)}</bdi>` : nothing}
            ${
              typeof value === "boolean"
                ? html`<input type="checkbox" .checked=${(edits?.get(name) ?? value) === true} @change=${input} />`
                : isLong
                  ? html`<textarea class="field" rows=${rowsFor(text)} dir="auto" .value=${text} aria-invalid=${isWrong} @input=${input}></textarea>`
                  : html`<input
                      type="text"
                      class="field"
                      inputmode=${typeof value === "number" ? "decimal" : "text"}
                      dir="auto"
                      .value=${text}
                      aria-invalid=${isWrong}
                      @input=${input}
                    />`
            }
            ${isWrong ? this.#renderCheck() : nothing}
          </label>
        `;
      })}
    </div>`;
  }

  /** One line in place: the answer to a question, or the reason of a decline, which may be left out. */
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

  #renderButtons(call: ToolBlock, id: string): TemplateResult {
    const { strings } = this.context;
    const { approval, decision, callId } = call;
    const isOne = this.calls.length === 1;
    // Where there are several, the page may have drawn the others itself.
    const pressed = (approved: boolean) => (isOne && !decision ? nothing : decision?.approved === approved);
    const isDeclining = this.declining === callId;
    const filled = isDeclining || decision?.approved === false ? "" : " filled";
    return html`
      <div class="choices">
        ${approval?.question || isDeclining ? this.#renderReason(call) : nothing}
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
          ${decision && !decision.approved ? icons.check : nothing}${strings.decline}
        </button>
        <button
          type="button"
          part="approve"
          id=${`approve-${callId}`}
          class=${`small-button${filled}${approval?.danger ? " danger" : ""}`}
          aria-pressed=${pressed(true)}
          aria-labelledby=${`approve-${callId} ${id}`}
          ?disabled=${!this.canDecide}
          @click=${(event: MouseEvent) => this.#pressApprove(call, event)}
        >
          ${decision?.approved ? icons.check : nothing}${this.#nameOfYes(call)}
        </button>
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

  /** The second click of two meant the same as the first. */
  #pressApprove(call: ToolBlock, { detail }: MouseEvent): void {
    if (detail > 1) return;
    this.wrong = [];
    if (!call.decision?.approved && this.#openCut([call])) return;
    if (call.approval?.question && !call.decision?.approved) {
      this.#answer(call);
      return;
    }
    const changed = this.#changedArguments(call);
    if (this.wrong.length > 0) return;
    this.declining = undefined;
    const approved = { approved: true, ...(changed !== undefined && { arguments: changed }) };
    this.#decide(call, call.decision?.approved ? undefined : approved);
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

  /** The words are a question's answer; without any, its field is where to write. */
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
    // What stands in the field of a question is its answer, and no reason.
    const reason = call.approval?.question ? undefined : this.#reasonOf(call.callId)?.value.trim();
    this.declining = undefined;
    this.#decide(call, { approved: false, ...(reason && { reason }) });
  }

  #decide({ callId }: ToolBlock, decision: ToolBlock["decision"]): void {
    if (decision) this.#edits.delete(callId);
    void this.context.actions.decide(callId, decision);
  }

  readonly #approveAll = ({ detail }: MouseEvent): void => {
    if (detail > 1) return;
    this.wrong = [];
    // One that was marked is as it was marked.
    const open = this.calls.filter(({ decision }) => !decision);
    if (this.#openCut(open)) return;
    const changed = open.map((call) => this.#changedArguments(call));
    if (this.wrong.length > 0) return;
    this.declining = undefined;
    open.forEach((call, index) => {
      const edited = changed[index];
      this.#decide(call, { approved: true, ...(edited !== undefined && { arguments: edited }) });
    });
  };

  #reasonKey(event: KeyboardEvent, call: ToolBlock): void {
    if (isTaken(event) || event.repeat || !/^(Enter|Escape)$/.test(event.key)) return;
    const isQuestion = call.approval?.question === true;
    if (isQuestion && event.key === "Escape") return;
    // Escape closes the line, and neither the panel around the chat nor an answer that is coming.
    event.preventDefault();
    if (event.key === "Enter" && isQuestion) this.#answer(call);
    else if (event.key === "Enter") this.#decline(call);
    else {
      const group = (event.target as Element).closest(".asked");
      group?.querySelector<HTMLElement>('[part="decline"]')?.focus({ preventScroll: true });
      this.declining = undefined;
    }
  }

  #toggleEdit(callId: string): void {
    this.context.actions.holdScroll();
    if (!this.#edits.delete(callId)) this.#edits.set(callId, new Map());
    this.wrong = [];
    this.requestUpdate();
  }

  /** The arguments as the person has changed them, as JSON; absent where they are as they were. */
  #changedArguments({ callId, arguments: input }: ToolBlock): string | undefined {
    const edits = this.#edits.get(callId);
    if (!edits?.size) return undefined;
    const entries = entriesOf(input);
    const wrong: string[] = [];
    const values = entries.map(([name, value]) => {
      const edit = edits.get(name);
      if (edit === undefined) return [name, value] as const;
      const read = typedValue(edit, value);
      if (read === undefined) wrong.push(`${callId} ${name}`);
      return [name, read] as const;
    });
    this.wrong = [...this.wrong, ...wrong];
    const changed = JSON.stringify(Object.fromEntries(values));
    return changed === JSON.stringify(Object.fromEntries(entries)) ? undefined : changed;
  }

  #showWhole(keys: readonly string[], isUnasked = false): void {
    this.context.actions.holdScroll();
    for (const key of keys) this.#whole.set(key, isUnasked);
    this.requestUpdate();
  }
}

/** As the person has changed them. */
function shownArguments({ arguments: input, decision }: ToolBlock): string {
  return decision?.arguments ?? input;
}

/** The value of a JSON text; `undefined` where it has none, or where the text says more than the value. */
function parse(json: string): unknown {
  try {
    const value: unknown = JSON.parse(json);
    const tokens = json.match(/"(?:[^"\\]|\\.)*"|:|-?\d[\d.eE+-]*/g) ?? [];
    const names = tokens.filter((token) => token === ":").length;
    const isWhole = namesIn(value) === names && tokens.every((token) => !/^[-\d]/.test(token) || isExact(token));
    return isWhole ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Fewer than the text has where two are equal. */
function namesIn(value: unknown): number {
  if (!isObject(value)) return 0;
  const inner = Object.values(value);
  return inner.reduce<number>((sum, it) => sum + namesIn(it), Array.isArray(value) ? 0 : inner.length);
}

/** Whether a number is not rounded when it is read. */
function isExact(number: string): boolean {
  return digitsOf(number) === digitsOf(String(Number(number)));
}

function digitsOf(number: string): string | undefined {
  const [, sign, whole = "", part = "", power = "0"] = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(number) ?? [];
  const digits = (whole + part).replace(/^0+/, "");
  const short = digits.replace(/(?<!0)0+$/, "");
  if (sign === undefined) return undefined;
  return short === "" ? "0" : `${sign}${short}e${Number(power) - part.length + digits.length - short.length}`;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function entriesOf(json: string): [string, unknown][] {
  const value = parse(json);
  return isObject(value) && !Array.isArray(value) ? Object.entries(value) : [];
}

interface Row {
  readonly label: string;
  readonly value: string;
}

interface ShownRow {
  readonly key: string;
  readonly label: Folded;
  readonly value: Folded;
  /** Present where not all of it is shown. */
  readonly size?: string | undefined;
}

/** So many lines of a field show all of a text. */
function rowsFor(text: string): number {
  return text.split("\n").reduce((rows, { length }) => rows + 1 + Math.floor(length / LONG_TEXT), 2);
}

/** The arguments as people read them: every value with a label. */
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

function wordsOf(value: unknown, { yes, no }: Strings): string {
  if (typeof value === "boolean") return value ? yes : no;
  const isEmpty = value === null || value === "" || (isObject(value) && Object.keys(value).length === 0);
  return isEmpty ? "–" : textOf(value);
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/** "order_id" and "orderId" as "Order id". */
function labelOf(name: string): string {
  const words = name
    .replace(/(?<=[\p{Ll}\d])(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})/gu, " ")
    .replace(/[_\-.\s]+/g, " ")
    .trim();
  if (words === "") return name;
  const lower = words.replace(/\p{Lu}(?=\p{Ll})/gu, (letter) => letter.toLowerCase());
  return lower.charAt(0).toUpperCase() + lower.slice(1);
}

/** What was typed, as a value of the kind that was there; `undefined` where it is none. */
function typedValue(edit: string | boolean, before: unknown): unknown {
  if (typeof edit === "boolean" || typeof before === "string") return edit;
  if (typeof before !== "number") return parse(edit);
  const digits = edit.trim().replace(/[\u0660-\u0669]/g, (digit) => `${digit.charCodeAt(0) - 0x660}`);
  // "1,500" is more than a thousand to some people, and less than two to others.
  if (!/^[-+]?(?:\d*[.,\u066b])?\d+$/.test(digits) || /^[-+]?[1-9]\d{0,2}[.,]\d{3}$/.test(digits)) return undefined;
  return Number(digits.replace(/[,\u066b]/, "."));
}

function formatJson(json: string): string {
  const value = parse(json);
  return value === undefined ? json : JSON.stringify(value, null, 2);
}
