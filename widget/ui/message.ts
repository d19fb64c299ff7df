import { html, nothing, type PropertyValues, type TemplateResult } from "lit";
import {
  type AssistantMessage,
  answerText,
  type Block,
  type Failure,
  IN_THE_LOG,
  joinedBlocks,
  type Message,
  type PageMessage,
  sourcesIn,
  toolCalls,
  type UserMessage,
} from "../conversations/messages.ts";
import { formatMoment, formatSeconds, formatTime } from "../i18n/format.ts";
import { partTexts } from "../i18n/load-strings.ts";
import { endNotes, failures, failureText } from "../i18n/strings.ts";
import { copyOn, renderActions } from "./actions.ts";
import { type BlockDrawing, type BlockKind, blockKinds, isHidden, kindOf } from "./blocks.ts";
import { ChatPart, type LazyElement } from "./chat-part.ts";
import { Clock, secondsSince } from "./controllers/clock.ts";
import type { PageDrawings } from "./controllers/page-drawings.ts";
import { iconButton, smallButton } from "./controls.ts";
import { icons } from "./icons.ts";
import { loadElement, loadPartEventually } from "./lazy-parts.ts";
import { liveText } from "./live-text.ts";
import { type AnswerPort, hasText, messageActions } from "./message-actions.ts";
import type { StepsElement } from "./steps.ts";
import { renderSuggestions } from "./suggestions.ts";

/** A wait is shown in words from the first time on, and also in seconds from the second on. */
const WORKING_FROM_SECONDS = 2;
const SECONDS_FROM_SECONDS = 10;

/** A text that has not grown for this time no longer shows that the agent is working. */
const STALLED_AFTER_SECONDS = 3;

/** Messages of the user that may be too long to be shown in full. */
const LONG = /^(?:[^\n]*\n){6}|^.{300}/s;

/** A part of an answer: blocks that are drawn together, or a drawing by the page, which has no blocks. */
interface AnswerPart {
  /** Index of its first block; for blocks that ask the user, of the last one. */
  place: number;
  readonly drawing: BlockDrawing;
  readonly blocks: Block[];
}

/** How long to wait for the code that asks the user. After that, its stand-in asks. */
const ASKED_WITHIN_SECONDS = 2;

/** One message of the user, the agent or the page. */
export class MessageElement extends ChatPart {
  static override properties = {
    message: { attribute: false },
    canRetry: { attribute: false },
    canContinue: { attribute: false },
    canDecide: { attribute: false },
    canEdit: { attribute: false },
    canSuggest: { attribute: false },
    isQueued: { attribute: false },
    editor: { attribute: false },
    isSending: { attribute: false },
    // Compared by content, as each drawing makes a new list: a token must not redraw the question.
    alternatives: { attribute: false, hasChanged: (now: unknown, before: unknown) => `${now}` !== `${before}` },
    canSwitch: { attribute: false },
  };
  message!: Message;
  /** Whether it is the last answer, and another one can be asked for. */
  canRetry = false;
  /** Whether it is the last answer, and was cut. */
  canContinue = false;
  /** Whether decisions about its calls can be sent. */
  canDecide = false;
  canEdit = false;
  /** Whether it is the last answer, and its suggestions can be sent. */
  canSuggest = false;
  /** Whether it waits for the connection. */
  isQueued = false;
  /** Shown in its place while it is being edited. */
  editor: HTMLElement | undefined;
  /** Whether it is on its way, or has no answer yet. */
  isSending = false;
  /** Ids of its alternatives, itself included. */
  alternatives: readonly string[] = [];
  /** Whether another alternative can be shown. */
  canSwitch = false;
  /** Absent until the code for steps and drawings has been loaded. */
  #drawings: PageDrawings | undefined;
  #parts: readonly AnswerPart[] = [];
  /** When the message changed last, in milliseconds. */
  #changedAt = 0;
  /** Since when nothing has shown that the agent is working, in milliseconds. */
  #silentSince: number | undefined;
  /** Since when code that asks the user has been missing, in milliseconds. */
  #missingSince: number | undefined;

  constructor() {
    super();
    new Clock(this, () => this.#isStreaming || this.#waitsToAsk);
  }

  protected override willUpdate(changed: PropertyValues<this>): void {
    const { message, context } = this;
    if (changed.has("message")) this.#changedAt = Date.now();
    if (this.alternatives.length > 1) void loadPartEventually("agent-chat-alternatives");
    if (context.modes.feedback) void loadPartEventually("agent-chat-feedback");
    if (context.messageHeader || (message.role === "assistant" && toolCalls(message).length > 0)) {
      // The code for drawings by the page is in the module of the steps.
      const { element } = blockKinds.tool;
      const Steps = customElements.get(element.tag) as typeof StepsElement | undefined;
      if (Steps) this.#drawings ??= new Steps.Drawings(this);
      else this.#need(element);
    }
    this.#drawings?.update(message, context);
    if (message.role === "page") return;
    if (message.role === "user") {
      if (message.files.length > 0) void loadPartEventually("agent-chat-files");
      if (LONG.test(message.text)) void loadPartEventually("agent-chat-message-fold");
      return;
    }
    const { failure, finishReason = "stop" } = message;
    if (failure) void loadPartEventually("agent-chat-ways-on");
    if (!(finishReason in endNotes) || (failure && !(failure.code in failures)))
      partTexts.load().then(
        () => this.requestUpdate(),
        () => undefined,
      );
    this.#parts = this.#partsOf(message);
    for (const { drawing } of this.#parts) if (drawing.element) this.#need(drawing.element);
    const isStalled = secondsSince(this.#changedAt) >= STALLED_AFTER_SECONDS;
    const isMute = this.#isStreaming && isSilent(this.#parts, isStalled || message.blocks.length === message.kept);
    this.#silentSince = isMute ? (this.#silentSince ?? this.#changedAt) : undefined;
  }

  protected override render(): TemplateResult {
    const { message } = this;
    if (message.role === "page") return this.#renderOfPage(message);
    return message.role === "user" ? this.#renderUser(message) : this.#renderAssistant(message);
  }

  /** Loads an element, and redraws the message once it is defined. */
  #need(element: LazyElement): void {
    if (customElements.get(element.tag)) return;
    void loadElement(element);
    void customElements.whenDefined(element.tag).then(() => this.requestUpdate());
  }

  get #isStreaming(): boolean {
    return this.message.role === "assistant" && this.message.status === "streaming";
  }

  get #headingId(): string {
    return `said-${this.message.id}`;
  }

  /**
   * A heading that tells screen readers who speaks, and by which they move between messages. A name given by the page
   * is also visible, unless the page draws the header itself.
   */
  #renderHeading(text: string, name?: string): TemplateResult {
    const level = this.context.headingLevel;
    const header = this.#drawings?.slotOf();
    if (name !== undefined && header === undefined)
      return html`<div id=${this.#headingId} part="name" class="name" role="heading" aria-level=${level} dir="auto">${name}</div>`;
    return html`
      <div id=${this.#headingId} class="visually-hidden" role="heading" aria-level=${level}>${text}</div>
      ${header === undefined ? nothing : renderSlot(header)}
    `;
  }

  /** A message of the user: a muted bubble on the end side. */
  #renderUser(message: UserMessage): TemplateResult {
    const { strings, actions } = this.context;
    return html`
      <article
        part="message user"
        class="message user"
        aria-labelledby=${this.#headingId}
      >
        ${this.#renderHeading(strings.you)}
        ${this.editor ?? this.#renderSaid(message)}
        ${this.#renderAlternatives()}
        ${
          this.isQueued
            ? html`<div part="queued" class="note queued choices">
                ${strings.queued}
                <span class="choices">
                  ${smallButton("edit", strings.change, () => actions.edit(message))}
                  ${smallButton("withdraw", strings.withdraw, () => actions.withdraw())}
                </span>
              </div>`
            : nothing
        }
      </article>
    `;
  }

  #renderSaid(message: UserMessage): TemplateResult {
    const { strings, actions } = this.context;
    const isLong = LONG.test(message.text);
    const edit = () => actions.edit(message);
    return html`
      ${
        message.files.length > 0
          ? html`<agent-chat-files
              .context=${this.context}
              .files=${message.files}
              .isSending=${this.isSending && !this.isQueued}
            ></agent-chat-files>`
          : nothing
      }
      <div class="said">
        ${this.#renderTime()}
        ${
          // Always there, so that a bubble has the same width during an answer and afterwards.
          iconButton("edit", strings.editMessage, icons.edit, edit, { disabled: !this.canEdit })
        }
        ${this.#renderCopy(message)}
        ${message.text === "" ? nothing : html`<div class=${isLong ? "bubble long" : "bubble"} dir="auto" tabindex="-1">${message.text}</div>`}
      </div>
      ${isLong ? html`<agent-chat-message-fold .context=${this.context}></agent-chat-message-fold>` : nothing}
    `;
  }

  #renderCopy({ text }: UserMessage | PageMessage): TemplateResult | typeof nothing {
    const copy = (event: Event) => void copyOn(event, ({ copyText }, button) => copyText(text, button), this.context);
    return text === "" ? nothing : iconButton("copy", this.context.strings.copyMessage, icons.copy, copy);
  }

  /** A message that the page has added looks like an answer. */
  #renderOfPage(message: PageMessage): TemplateResult {
    const { strings, agent } = this.context;
    const { name, text } = message;
    return html`
      <article part="message page" class="message assistant" aria-labelledby=${this.#headingId}>
        ${this.#renderHeading(strings.agentSaid(name ?? agent), name)}
        ${blockKinds.text.draw([{ type: "text", text }], false, this)}
        <div class="answer-actions">${this.#renderCopy(message)} ${this.#renderTime()}</div>
      </article>
    `;
  }

  #renderAlternatives(): TemplateResult | undefined {
    if (this.alternatives.length < 2) return undefined;
    return html`<agent-chat-alternatives
      .context=${this.context}
      .message=${this.message}
      .ids=${this.alternatives}
      .canSwitch=${this.canSwitch}
    ></agent-chat-alternatives>`;
  }

  /** An answer: steps and texts, without a bubble. */
  #renderAssistant(message: AssistantMessage): TemplateResult {
    const { strings, agent } = this.context;
    const isStreaming = this.#isStreaming;
    const parts = this.#parts;
    const hasSources = sourcesIn(message).length > 0;
    if (hasSources) void loadPartEventually("agent-chat-sources");
    return html`
      <article
        part="message assistant"
        class="message assistant"
        aria-labelledby=${this.#headingId}
        aria-busy=${isStreaming}
      >
        ${this.#renderHeading(strings.agentSaid(agent))}
        ${this.#renderParts(message, parts)}
        ${hasSources ? html`<agent-chat-sources .context=${this.context} .message=${message}></agent-chat-sources>` : nothing}
        ${this.#silentSince === undefined ? nothing : this.#renderWaiting(secondsSince(this.#silentSince))}
        ${isStreaming ? nothing : this.#renderOutcome(message)}
      </article>
    `;
  }

  #renderWaiting(seconds: number): TemplateResult {
    const { strings, agent } = this.context;
    const text = seconds < WORKING_FROM_SECONDS ? undefined : strings.working(agent);
    const clock = seconds < SECONDS_FROM_SECONDS ? undefined : formatSeconds(seconds, strings.lang);
    return html`
      <div class="waiting" role="presentation">
        <span></span>
        <p class="step-name shimmer">${liveText(text)}</p>
        <p class="aside" aria-hidden="true">${liveText(clock)}</p>
      </div>
    `;
  }

  /** Draws each part at its `place`, so that it keeps its elements when an earlier part appears or disappears. */
  #renderParts({ blocks, status }: AssistantMessage, parts: readonly AnswerPart[]): unknown {
    const places: unknown[] = blocks.map(() => nothing);
    for (const part of parts) {
      places[part.place] = part.drawing.draw(part.blocks, status === "streaming" && part === parts.at(-1), this);
    }
    return places;
  }

  get #waitsToAsk(): boolean {
    return this.#missingSince !== undefined && secondsSince(this.#missingSince) < ASKED_WITHIN_SECONDS;
  }

  /** How to draw blocks that ask the user. `undefined` for other blocks, and while waiting for the code. */
  #askingOf(kind: BlockKind): BlockDrawing | undefined {
    const { element, standIn } = kind;
    if (!element || !standIn) return undefined;
    if (customElements.get(element.tag)) return kind;
    this.#missingSince ??= Date.now();
    for (const wanted of [element, standIn.element]) this.#need(wanted);
    return !this.#waitsToAsk && customElements.get(standIn.element.tag) ? standIn : undefined;
  }

  /** The parts of an answer without hidden blocks: first those that ask the user, then the others in their order. */
  #partsOf({ blocks, forgotten }: AssistantMessage): AnswerPart[] {
    const parts: AnswerPart[] = [];
    const asking: AnswerPart[] = [];
    joinedBlocks(blocks).forEach((block, place) => {
      const slot = block.type === "tool" ? this.#drawings?.slotOf(block.callId) : undefined;
      if (slot !== undefined) parts.push({ place, drawing: { draw: () => renderSlot(slot) }, blocks: [] });
      else if (!isHidden(block, this.context.modes)) {
        const asks = forgotten ? undefined : this.#askingOf(kindOf(block));
        const drawing: BlockDrawing = asks ?? blockKinds[block.type];
        const list = asks ? asking : parts;
        const last = list.at(-1);
        if (last && drawing.element && last.drawing.element === drawing.element) {
          last.blocks.push(block);
          // The questions are shown at the place of the last one.
          if (asks) last.place = place;
        } else list.push({ place, drawing, blocks: [block] });
      }
    });
    return [...asking, ...parts];
  }

  #renderOutcome(message: AssistantMessage): TemplateResult {
    const { strings, actions } = this.context;
    const note = this.#noteOf(message);
    const goOn = this.canContinue ? smallButton("continue", strings.continueAnswer, () => actions.continue()) : nothing;
    return html`
      ${note === undefined ? nothing : html`<p part="note" class="note choices">${note} ${goOn}</p>`}
      ${
        // The card itself says that its calls can no longer be decided.
        message.failure && message.failure.code !== "approval_expired" ? this.#renderFailure(message.failure) : nothing
      }
      ${this.#renderActions(message)}
      ${this.canSuggest ? renderSuggestions(message.suggestions ?? [], this.context) : nothing}
    `;
  }

  /** Why an answer failed, and the buttons for what can be done. */
  #renderFailure(failure: Failure): TemplateResult {
    const { context, canRetry } = this;
    const { strings } = context;
    const { code, reference } = failure;
    return html`
      <div part="error" class="failure">
        ${icons.alert}
        <p><bdi>${this.canDecide ? strings.checkValue : failureText(failure, strings)}</bdi> ${reference && IN_THE_LOG.test(code) ? strings.reference(reference) : nothing}</p>
        <agent-chat-ways-on .context=${context} .failure=${failure} .canRetry=${canRetry}></agent-chat-ways-on>
      </div>
    `;
  }

  #renderActions(message: AssistantMessage): TemplateResult | typeof nothing {
    const { context, canRetry } = this;
    const answer: AnswerPort = {
      messageId: message.id,
      text: answerText(message),
      sources: sourcesIn(message),
      message,
      context,
      canRetry,
      drawn: () => this.querySelectorAll(".markdown"),
      requestUpdate: () => this.requestUpdate(),
    };
    // While a call waits, the answer has not ended.
    const actions = [...messageActions(context), ...context.messageActions];
    const buttons = this.canDecide ? [] : renderActions(actions, answer);
    const alternatives = this.#renderAlternatives();
    if (buttons.length === 0 && !alternatives) return nothing;
    return html`
      <div class="answer-actions">
        ${alternatives} ${buttons}
        ${
          context.modes.feedback && hasText(answer)
            ? html`<agent-chat-feedback .context=${context} .message=${message}></agent-chat-feedback>`
            : nothing
        }
        ${this.#renderTime()}
      </div>
    `;
  }

  #renderTime(): TemplateResult | typeof nothing {
    const { at } = this.message;
    const { lang } = this.context.strings;
    if (at === undefined) return nothing;
    const iso = new Date(at).toISOString();
    return html`<time part="time" class="time" datetime=${iso} title=${formatMoment(at, lang)}>${formatTime(at, lang)}</time>`;
  }

  /** A sentence about an answer that was cut short. */
  #noteOf(message: AssistantMessage): string | undefined {
    const { strings, agent } = this.context;
    if (message.forgotten) return strings.forgotten(agent);
    if (message.status !== "done") return undefined;
    const { finishReason = "stop" } = message;
    // `undefined` until its text is loaded.
    const note = endNotes[finishReason as keyof typeof endNotes];
    if (note !== "") return note && strings[note];
    // Such an answer is not empty: it asks the user, in its own card.
    if (finishReason === "approval_required") return undefined;
    return answerText(message) === "" ? strings.emptyAnswer : undefined;
  }
}

/** A slot for a drawing by the page. */
function renderSlot(name: string): TemplateResult {
  return html`<slot class="drawing" name=${name}></slot>`;
}

/** Whether nothing on the screen shows that the agent works. */
function isSilent(parts: readonly AnswerPart[], isNothingNew: boolean): boolean {
  const newest = isNothingNew ? undefined : parts.at(-1)?.blocks.at(-1);
  return !parts.some(({ blocks }) => blocks.some((block) => kindOf(block).isActive?.(block, block === newest)));
}
