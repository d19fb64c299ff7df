/** Thoughts and tool calls, loaded with the first of them. */

import { html, nothing, type TemplateResult } from "lit";
import type { ImagePart } from "../../server/protocol/chat.ts";
import "../i18n/add-part-texts.ts";
import type { Message, Step, ThinkingBlock, ToolBlock, ToolStatus } from "../conversations/messages.ts";
import { formatBytes, formatSeconds, formatTime } from "../i18n/format.ts";
import { formatDuration } from "../i18n/format-duration.ts";
import type { Strings } from "../i18n/strings.ts";
import { linesInChunks } from "../markdown/lines.ts";
import { partSheets } from "../styles/part-sheets.ts";
import styles from "../styles/steps.css";
import { copyOn } from "./actions.ts";
import type { TranscriptBlock } from "./block-module.ts";
import { ChatPart, definePart } from "./chat-part.ts";
import type { ChatModes } from "./context.ts";
import { CallAnnouncer } from "./controllers/call-announcer.ts";
import { Clock, secondsSince } from "./controllers/clock.ts";
import { Disclosure } from "./controllers/disclosure.ts";
import { PageDrawings } from "./controllers/page-drawings.ts";
import { iconButton } from "./controls.ts";
import { icon, icons } from "./icons.ts";
import { liveText } from "./live-text.ts";
import { beginning, plain } from "./plain-text.ts";
import { toolName, toolStatusText, transcribeCall } from "./tool-text.ts";

const bulb = icon(
  "M9.5 17.5h5m-4 3h3M12 3.5a6 6 0 0 0-3.7 10.7c.8.7 1.2 1.5 1.2 2.3v1h5v-1c0-.8.4-1.6 1.2-2.3A6 6 0 0 0 12 3.5z",
);
const dash = icon("M7 12h10");

const statusIcons: Readonly<Record<ToolStatus | "coped", TemplateResult>> = {
  running: icons.spinner,
  completed: icons.check,
  coped: icons.check,
  failed: icon("M7 7l10 10M17 7L7 17"),
  stopped: dash,
  waiting: dash,
};

const FOLDED_FROM = 3;

/** Of longer data, in characters, only the beginning is shown: all of it would block the page. */
const LONG_DATA = 8_000;

/** Characters of the arguments that the row of a closed call shows. */
const HINT_CHARACTERS = 80;

/** Maximum number of pictures drawn for one result: as many as a server sends. */
const MAX_PICTURES = 4;

/** A running call shows its seconds from this time on. */
const CLOCK_FROM_SECONDS = 2;

/** Shorter durations are not shown, as they mean nothing to people. */
const SHORTEST_DURATION_MS = 1_000;

interface Row {
  /** Absent if there is nothing to open. */
  readonly isOpen?: boolean | undefined;
  readonly icon: TemplateResult;
  readonly name: string;
  /** Distinguishes the row from others of the same name. */
  readonly hint?: string | readonly TemplateResult[];
  readonly isRunning?: boolean;
  /** The meaning of the icon, for screen readers. */
  readonly note?: string | undefined;
  /** Text at the end of the row: a duration, or how many steps failed. Hidden from screen readers while it runs. */
  readonly aside?: string | undefined;
}

/** Consecutive thoughts and tool calls. From three on they fold into one row when they end, steps of a call always. */
export class StepsElement extends ChatPart {
  /** For `MessageElement`: the page may draw the calls and the header of a message. */
  static readonly Drawings = PageDrawings;
  /** For `AnswerAnnouncer`. */
  static readonly CallAnnouncer = CallAnnouncer;
  static override readonly sheets = partSheets(styles);
  static override properties = {
    steps: { attribute: false },
    isLive: { attribute: false },
    message: { attribute: false },
  };
  steps: readonly Step[] = [];
  /** Whether another step may follow. */
  isLive = false;
  /** The answer that they belong to; absent for the steps of a call. */
  message?: Message;
  readonly #disclosure = new Disclosure(this, () => this.isLive);

  protected override render(): TemplateResult {
    const { steps } = this;
    const { tools } = this.context.modes;
    const isSeen = (step: Step) => isWaiting(step) || (tools !== "titles" && hasPictures(step));
    const folds = steps.length >= (this.message ? FOLDED_FROM : 1) && !steps.some(isSeen);
    const isOpen = !folds || this.#isOpen;
    // When the group's row appears above them, the rows keep their elements, and thus the focus.
    return html`
      <div part="steps" class=${folds ? "steps folds" : "steps"} data-status=${this.#status}>
        ${folds ? this.#renderGroupRow(isOpen) : nothing}
        <div id=${this.#disclosure.bodyId} class="steps-body" ?hidden=${!isOpen} @click=${this.#clicked}>
          ${steps.map((step) => html`<agent-chat-step .context=${this.context} .step=${step}></agent-chat-step>`)}
        </div>
      </div>
    `;
  }

  #renderGroupRow(isOpen: boolean): TemplateResult {
    const { strings } = this.context;
    const running = this.steps.findLast(isRunning);
    const failures = this.steps.filter(hasFailed).length;
    return renderRow(this.#disclosure, {
      isOpen,
      icon: statusIcons[this.#status],
      name: isOpen || !running ? strings.steps(this.steps.length) : plain(toolName(running, strings)),
      hint: isOpen ? "" : plain(running?.progress ?? ""),
      aside: failures > 0 ? strings.stepsFailed(failures) : undefined,
    });
  }

  /** An agent that went on after a failure has coped with it: the mark is neutral unless the answer has failed, too. */
  get #status(): ToolStatus | "coped" {
    if (this.isLive) return "running";
    const calls = this.steps.filter((step) => step.type === "tool");
    const hasAnswerFailed = this.message?.role === "assistant" && this.message.status === "failed";
    if (calls.some(hasFailed)) return hasAnswerFailed ? "failed" : "coped";
    const last = calls.at(-1);
    return last ? outcomeOf(last) : "completed";
  }

  /** Open by default: steps that the page wants to be open, and those of an answer while they run. */
  get #isOpen(): boolean {
    const { thinking, tools } = this.context.modes;
    const isWanted = this.steps.some((step) => (step.type === "tool" ? tools === "open" : thinking === "open"));
    return this.#disclosure.isOpen(isWanted || (this.message !== undefined && this.#disclosure.isActive));
  }

  /** When the user opens or closes a step, the group around it stays open. */
  #clicked({ target }: Event): void {
    if ((target as Element).closest(".step-row")) this.#disclosure.choose(true);
  }
}

/** A thought, or a tool call, in a row that opens. */
class StepElement extends ChatPart {
  static override properties = { step: { attribute: false } };
  step!: Step;
  /** Formatted data by its original text: formatted once, and long data only when all of it is shown or copied. */
  readonly #formatted = new Map<string, string>();
  /** Labels of long data that is shown in full. */
  readonly #shownWhole = new Set<string>();
  readonly #disclosure = new Disclosure(this, () => this.step.type === "thinking" && this.step.endedAt === undefined);

  constructor() {
    super();
    new Clock(this, () => this.step.type === "tool" && this.step.status === "running");
  }

  protected override render(): TemplateResult {
    return this.step.type === "tool" ? this.#renderTool(this.step) : this.#renderThinking(this.step);
  }

  /** The model's reasoning: open while it streams and a moment longer, unless page or user decided otherwise. */
  #renderThinking({ text, startedAt, endedAt }: ThinkingBlock): TemplateResult {
    const { strings, modes } = this.context;
    const isRunning = endedAt === undefined;
    const isActive = modes.thinking === "auto" && this.#disclosure.isActive;
    const isOpen = this.#disclosure.isOpen(isActive || modes.thinking === "open");
    const name = isRunning ? strings.thinking : this.#thoughtFor(endedAt - startedAt);
    return html`
      <section part="thinking" class="step">
        ${renderRow(this.#disclosure, { isOpen, icon: bulb, name, isRunning })}
        <div id=${this.#disclosure.bodyId} class="step-body" ?hidden=${!isOpen}>
          ${
            isOpen
              ? html`<div class="thoughts" tabindex="0" role="group" aria-label=${strings.thinking}>
                  <div dir="auto">${liveText(text.trim())}</div>
                </div>`
              : nothing
          }
        </div>
      </section>
    `;
  }

  #thoughtFor(milliseconds: number): string {
    const { strings } = this.context;
    return milliseconds < 1000
      ? strings.thoughtBriefly
      : strings.thoughtFor(formatDuration(milliseconds, strings.lang));
  }

  #renderTool(call: ToolBlock): TemplateResult {
    const { arguments: input, output, progress, steps } = call;
    const status = outcomeOf(call);
    const doing = isRunning(call) ? progress : undefined;
    const { strings, modes } = this.context;
    const isForCustomers = modes.tools === "titles";
    const opens = !isForCustomers && (!call.title || /[^{}]/.test(input) || !!output);
    const outcome = status === "waiting" || call.decision ? undefined : toolStatusText(status, strings);
    const isWord = isForCustomers && /failed|stopped/.test(status);
    const isOpen = opens && this.#disclosure.isOpen(modes.tools === "open");
    const row = renderRow(this.#disclosure, {
      isOpen: opens ? isOpen : undefined,
      icon: statusIcons[status],
      name: plain(toolName(call, strings)),
      // When open, the arguments themselves are shown below.
      hint: doing === undefined && opens && !isOpen && !call.title ? quoted(hintOf(input)) : plain(doing ?? ""),
      isRunning: isRunning(call),
      note: isWord ? undefined : outcome,
      aside: isWord && outcome ? outcome : this.#asideOf(call),
    });
    const outputLabel = status === "failed" ? strings.toolError : strings.toolOutput;
    return html`
      <section part="tool" class="step" data-status=${status} translate="no">
        ${row} ${isForCustomers ? nothing : this.#renderPictures(call)}
        <div id=${this.#disclosure.bodyId} class="step-body" ?hidden=${!isOpen}>
          ${
            isOpen
              ? html`<div class="details">
                  ${input === "" ? nothing : this.#renderData(strings.toolArguments, input)}
                  ${output === undefined ? nothing : this.#renderData(outputLabel, output)}
                </div>`
              : nothing
          }
        </div>
        ${
          steps
            ? html`<agent-chat-steps
                .context=${this.context}
                .steps=${steps}
                .isLive=${isRunning(call)}
              ></agent-chat-steps>`
            : nothing
        }
      </section>
    `;
  }

  /** The pictures of a result, whose clicks `openLarge` handles, and how many others are missing. */
  #renderPictures(call: ToolBlock): TemplateResult | typeof nothing {
    const { images = [], imagesOmitted: omitted = 0 } = call;
    const { strings } = this.context;
    const here = images.filter((image) => image.type === "image_url").slice(0, MAX_PICTURES);
    // The number is checked because it comes from the server.
    const others = images.length - here.length + (Number.isInteger(omitted) && omitted > 0 ? omitted : 0);
    if (images.length + others === 0) return nothing;
    const name = plain(toolName(call, strings));
    const picture = ({ image_url: { url } }: ImagePart) =>
      html`<button type="button" class="image" aria-haspopup="dialog"><img src=${url} alt=${name} /></button>`;
    return html`
      <div class="pictures">
        ${here.map(picture)} ${others === 0 ? nothing : html`<p>${strings.picturesNotHere(others)}</p>`}
      </div>
    `;
  }

  /** Whether a call waits, when it was decided, how long it has been running, or how long it took. */
  #asideOf({ status, startedAt, durationMs = 0, approval, decision, decidedAt = 0 }: ToolBlock): string | undefined {
    const { strings, modes } = this.context;
    if (decision && status !== "running" && status !== "waiting") {
      const time = formatTime(decidedAt, strings.lang);
      if (!decision.approved) return strings.declinedAt(time);
      return approval?.question ? strings.answeredAt(time) : strings.approvedAt(time);
    }
    if (status === "waiting") return strings.toolWaiting;
    // Customers see what is done, without durations.
    if (modes.tools === "titles") return undefined;
    if (status === "running") {
      const seconds = secondsSince(startedAt);
      return seconds < CLOCK_FROM_SECONDS ? undefined : formatSeconds(seconds, strings.lang);
    }
    return durationMs < SHORTEST_DURATION_MS ? undefined : formatDuration(durationMs, strings.lang);
  }

  /** The arguments or the output of a call, always as text. */
  #renderData(label: string, data: string): TemplateResult {
    const { strings } = this.context;
    const isWhole = data.length <= LONG_DATA || this.#shownWhole.has(label);
    return html`
      <div class="data">
        <div class="data-head">
          <span>${label}</span>
          ${iconButton("copy", `${strings.copy}: ${label}`, icons.copy, (event) => {
            void copyOn(event, ({ copyText }, button) => copyText(this.#format(data), button), this.context);
          })}
        </div>
        <pre dir="auto" tabindex="0" role="group" aria-label=${label}>${
          isWhole
            ? renderWhole(plain(this.#format(data)) || strings.emptyOutput)
            : `${plain(data.slice(0, LONG_DATA))}…`
        }</pre>
        ${
          isWhole
            ? nothing
            : html`<button type="button" class="small-button" @click=${() => this.#showWhole(label)}>
                ${strings.showAll(formatBytes(data.length, strings.lang))}
              </button>`
        }
      </div>
    `;
  }

  #format(data: string): string {
    const known = this.#formatted.get(data);
    if (known !== undefined) return known;
    const formatted = formatData(data);
    this.#formatted.set(data, formatted);
    return formatted;
  }

  #showWhole(label: string): void {
    this.context.actions.holdScroll();
    this.#shownWhole.add(label);
    this.requestUpdate();
  }
}

definePart("agent-chat-step", StepElement);

export function transcribe(step: Step, strings: Strings, modes: ChatModes): TranscriptBlock {
  return step.type === "tool"
    ? transcribeCall(step, strings, modes)
    : { parts: [["quote", step.text.trim()]], json: { type: step.type, text: step.text } };
}

/** A call that the user has declined has not failed. */
function outcomeOf({ status, decision }: ToolBlock): ToolStatus {
  return status === "failed" && decision?.approved === false ? "stopped" : status;
}

function hasFailed(step: Step): boolean {
  return step.type === "tool" && outcomeOf(step) === "failed";
}

function isRunning(step: Step): step is ToolBlock {
  return step.type === "tool" && step.status === "running";
}

function isWaiting(step: Step): boolean {
  return step.type === "tool" && step.status === "waiting";
}

/** Pictures of an agent are meant for people: they are not folded away. */
function hasPictures(step: Step): boolean {
  return step.type === "tool" && (step.images?.length ?? 0) > 0;
}

/** The row that opens a step, or all of them. */
function renderRow(disclosure: Disclosure, { isOpen, icon, name, hint, isRunning, note, aside }: Row): TemplateResult {
  const row = html`
    <span class="step-icon">${icon}</span>
    <span class=${isRunning ? "step-name shimmer" : "step-name"} dir="auto">${liveText(name)}</span>
    <span class="hint" dir="auto">${typeof hint === "string" ? liveText(hint) : hint}</span>
    <span class="visually-hidden">${liveText(note)}</span>
    ${
      aside === undefined
        ? nothing
        : html`<span class="aside" aria-hidden=${isRunning ? "true" : nothing}>${liveText(aside)}</span>`
    }
  `;
  if (isOpen === undefined) return html`<div class="step-row">${row}</div>`;
  return html`
    <button
      type="button"
      class="step-row"
      aria-expanded=${isOpen}
      aria-controls=${disclosure.bodyId}
      @click=${() => disclosure.choose(!isOpen)}
    >
      ${row}
      <span class="chevron">${icons.next}</span>
    </button>
  `;
}

/** In the quotation marks of the user's language. */
function quoted(words: readonly string[]): readonly TemplateResult[] {
  return words.map((word, index) => html`${index > 0 ? ", " : nothing}<q>${liveText(plain(word))}</q>`);
}

/** Distinguishes a call from others of its tool: the words and numbers of its arguments, as many as a row shows. */
export function hintOf(input: string): string[] {
  const words: string[] = [];
  const gather = (value: unknown) => {
    if (typeof value === "object" && value !== null) Object.values(value).forEach(gather);
    else if (typeof value === "string" || typeof value === "number") words.push(String(value));
  };
  try {
    gather(input.length > LONG_DATA ? input.slice(0, LONG_DATA) : JSON.parse(input));
  } catch {
    words.push(input);
  }
  const shown: string[] = [];
  let room = HINT_CHARACTERS;
  for (const word of words.map((it) => it.replace(/\s+/g, " ").trim())) {
    if (word === "" || room <= 0) continue;
    shown.push(word.length <= room ? word : `${beginning(word, room)}…`);
    room -= word.length;
  }
  return shown;
}

/** Long text in chunks of whole lines, of which the browser lays out only those in view. */
function renderWhole(text: string): unknown {
  return text.length <= LONG_DATA
    ? text
    : linesInChunks(text).map((chunk) => html`<span class="chunk">${chunk}</span>`);
}

/** JSON with line breaks; any other text as it is. */
function formatData(text: string): string {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // It only looked like JSON.
    return text;
  }
}
