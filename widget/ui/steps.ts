import { html, nothing, type PropertyValues, type TemplateResult } from "lit";
import { guard } from "lit/directives/guard.js";
import { formatDuration } from "../i18n/format.ts";
import type { Step, ThinkingBlock, ToolBlock } from "../session/messages.ts";
import { ChatPart } from "./chat-part.ts";
import { Copier } from "./controllers/copier.ts";
import { icons } from "./icons.ts";
import { hintOf, renderDetails, statusIcon, toolStatus } from "./tool-call.ts";

const FOLDED_FROM = 3;

/** How long a row that is over stays open: long enough to see that it has ended. */
const LINGERS_FOR_MS = 1_000;

/** A shorter duration says nothing. */
const SHORTEST_DURATION_MS = 50;

/** The row that opens all others. */
const GROUP = "steps";

interface Row {
  /** Names the row and the element that it opens, within this element. */
  readonly key: string;
  readonly isOpen: boolean;
  readonly icon: TemplateResult;
  readonly name: string;
  /** Distinguishes the row from others of the same name. */
  readonly hint?: unknown;
  readonly isRunning?: boolean;
  /** Says what the icon shows. */
  readonly note?: string;
  /** Stands at the end of the row: a duration, or how many steps failed. */
  readonly aside?: string | undefined;
}

/**
 * Thoughts and tool calls in a row. From three on they fold into one row when they have ended.
 *
 * The rows keep their elements, and with them the focus, when the row above them appears.
 */
export class StepsElement extends ChatPart {
  static override properties = {
    steps: { attribute: false, hasChanged: (now: readonly Step[], before?: readonly Step[]) => !isSame(now, before) },
    baseId: { attribute: false },
    isLive: { attribute: false },
    chosen: { state: true },
    lingering: { state: true },
  };
  steps: readonly Step[] = [];
  /** Begins the ids of elements inside, which have to be the only ones in the chat. */
  baseId = "";
  /** Whether another step may follow. */
  isLive = false;
  /** The rows that the person has opened or closed, by key. The page decides about all others. */
  private chosen: ReadonlyMap<string, boolean> = new Map();
  /** Rows that are open for a moment after they have ended. */
  private lingering: ReadonlySet<string> = new Set();
  /** Rows that were going on when they were drawn last. */
  #running: ReadonlySet<string> = new Set();
  readonly #timers = new Map<string, ReturnType<typeof setTimeout>>();
  readonly #copier = new Copier(this);

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
    this.lingering = new Set();
  }

  protected override willUpdate(changed: PropertyValues<this>): void {
    if (!changed.has("steps") && !changed.has("isLive")) return;
    const running = this.#runningRows();
    for (const key of running) this.#stopLingering(key);
    for (const key of this.#running) if (!running.has(key)) this.#linger(key);
    this.#running = running;
  }

  protected override render(): TemplateResult {
    const { steps } = this;
    const folds = steps.length >= FOLDED_FROM;
    const isOpen = !folds || this.#isGroupOpen();
    return html`
      <div part="steps" class=${folds ? "steps folds" : "steps"} data-status=${this.#groupStatus()}>
        ${folds ? this.#renderGroupRow(isOpen) : nothing}
        <div id=${this.#idOf(GROUP)} class="steps-body" ?hidden=${!isOpen}>
          ${steps.map((step, index) =>
            step.type === "tool" ? this.#renderTool(step, String(index)) : this.#renderThinking(step, String(index)),
          )}
        </div>
      </div>
    `;
  }

  #renderGroupRow(isOpen: boolean): TemplateResult {
    const { strings } = this.context;
    const failures = this.steps.filter((step) => step.type === "tool" && step.status === "failed").length;
    return this.#renderRow({
      key: GROUP,
      isOpen,
      icon: statusIcon(this.#groupStatus()),
      name: strings.steps(this.steps.length),
      aside: failures > 0 ? strings.stepsFailed(failures) : undefined,
    });
  }

  /**
   * The model's reasoning: unless page or person decided otherwise, open while it streams and closed soon afterwards.
   */
  #renderThinking({ text, startedAt, endedAt }: ThinkingBlock, key: string): TemplateResult {
    const { strings, modes } = this.context;
    const isRunning = endedAt === undefined;
    const isOpen = this.#isOpen(key, modes.thinking === "auto" ? this.#isLively(key) : modes.thinking === "open");
    const name = isRunning ? strings.thinking : this.#thoughtFor(endedAt - startedAt);
    return html`
      <section part="thinking" class="step">
        ${this.#renderRow({ key, isOpen, icon: icons.bulb, name, isRunning })}
        <div id=${this.#idOf(key)} class="step-body" ?hidden=${!isOpen}>
          ${
            isOpen
              ? html`<div class="thoughts" tabindex="0" role="group" aria-label=${strings.thinking}>
                  <div dir="auto">${text.trim()}</div>
                </div>`
              : nothing
          }
        </div>
      </section>
    `;
  }

  /** A tool call: its row, and once that is open its arguments and output, as text. */
  #renderTool(call: ToolBlock, key: string): TemplateResult {
    const { strings, modes } = this.context;
    const { tool, status, durationMs = 0 } = call;
    const isOpen = this.#isOpen(key, modes.tools === "open");
    const row = this.#renderRow({
      key,
      isOpen,
      icon: statusIcon(status),
      name: tool,
      // Open, the arguments themselves stand below.
      hint: isOpen ? nothing : guard([call.arguments], () => hintOf(call.arguments)),
      isRunning: status === "running",
      note: toolStatus(status, strings),
      aside: durationMs < SHORTEST_DURATION_MS ? undefined : formatDuration(durationMs, strings.lang),
    });
    return html`
      <section part="tool" class="step" data-status=${status}>
        ${row}
        <div id=${this.#idOf(key)} class="step-body" ?hidden=${!isOpen}>
          ${
            isOpen
              ? renderDetails(call, this.context, {
                  copier: this.#copier,
                  isWhole: (name) => this.#isOpen(`${key}.${name}`, false),
                  showAll: (name) => this.#choose(`${key}.${name}`, true),
                  key,
                })
              : nothing
          }
        </div>
      </section>
    `;
  }

  /** The row that opens a step, or all of them. */
  #renderRow({ key, isOpen, icon, name, hint, isRunning, note, aside }: Row): TemplateResult {
    return html`
      <button
        type="button"
        class="step-row"
        aria-expanded=${isOpen}
        aria-controls=${this.#idOf(key)}
        @click=${() => this.#toggle(key, isOpen)}
      >
        <span class="step-icon">${icon}</span>
        <span class=${isRunning ? "step-name shimmer" : "step-name"}>${name}</span>
        <span class="hint" dir="auto">${hint}</span>
        <span class="visually-hidden">${note}</span>
        ${aside === undefined ? nothing : html`<span class="aside">${aside}</span>`}
        <span class="chevron">${icons.chevron}</span>
      </button>
    `;
  }

  /** An agent that went on after a failure has coped with it: how the last call ended is how the group did. */
  #groupStatus(): ToolBlock["status"] {
    if (this.isLive) return "running";
    return this.steps.findLast((step) => step.type === "tool")?.status ?? "completed";
  }

  /** Steps that the page wants to be open are not folded away. */
  #isGroupOpen(): boolean {
    const { thinking, tools } = this.context.modes;
    const isWanted = this.steps.some(({ type }) => (type === "tool" ? tools : thinking) === "open");
    return this.#isOpen(GROUP, isWanted || this.#isLively(GROUP));
  }

  #isOpen(key: string, byDefault: boolean): boolean {
    return this.chosen.get(key) ?? byDefault;
  }

  /** Whether it goes on, or has just ended. */
  #isLively(key: string): boolean {
    return this.#running.has(key) || this.lingering.has(key);
  }

  #runningRows(): ReadonlySet<string> {
    const thoughts = this.steps.flatMap((step, index) =>
      step.type === "thinking" && step.endedAt === undefined ? [String(index)] : [],
    );
    return new Set(this.isLive ? [GROUP, ...thoughts] : thoughts);
  }

  #linger(key: string): void {
    this.lingering = new Set([...this.lingering, key]);
    this.#timers.set(
      key,
      setTimeout(() => {
        // The focus must not fall out of a row that closes by itself.
        if (this.#hasFocus(key)) this.#choose(key, true);
        this.#stopLingering(key);
      }, LINGERS_FOR_MS),
    );
  }

  #stopLingering(key: string): void {
    clearTimeout(this.#timers.get(key));
    this.#timers.delete(key);
    this.lingering = new Set([...this.lingering].filter((other) => other !== key));
  }

  #hasFocus(key: string): boolean {
    return this.querySelector(`[id="${this.#idOf(key)}"]:focus-within`) !== null;
  }

  /** The person opens or closes a row; the group around it then stays open. */
  #toggle(key: string, wasOpen: boolean): void {
    this.#choose(key, !wasOpen);
    if (key !== GROUP) this.#choose(GROUP, true);
  }

  #choose(key: string, isOpen: boolean): void {
    this.context.actions.holdScroll();
    this.chosen = new Map(this.chosen).set(key, isOpen);
  }

  #idOf(key: string): string {
    return `body-${this.baseId}.${key}`;
  }

  #thoughtFor(milliseconds: number): string {
    const { strings } = this.context;
    return milliseconds < 1000
      ? strings.thoughtBriefly
      : strings.thoughtFor(formatDuration(milliseconds, strings.lang));
  }
}

function isSame(steps: readonly Step[], others: readonly Step[] = []): boolean {
  return steps.length === others.length && steps.every((step, index) => step === others[index]);
}
