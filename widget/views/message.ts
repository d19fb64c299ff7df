import { html, nothing, type TemplateResult } from "lit";
import { shownOf } from "../step-modes.ts";
import { strings } from "../strings.ts";
import { type Question, type Reply, replyText } from "../transcript.ts";
import type { ViewState } from "../view-state.ts";
import { blocksView } from "./blocks.ts";
import { failureView, type Retries, smallButton } from "./failure.ts";
import { iconButton } from "./header.ts";
import * as icons from "./icons.ts";
import type { Sending } from "./upload.ts";

/** Retries are absent where the reply cannot be asked for again. */
export interface ReplyContext extends Retries {
  readonly agent: string;
  readonly view: ViewState;
}

export interface QuestionContext {
  readonly view: ViewState;
  /** Whether its text is in the composer, to be changed. */
  readonly editing: boolean;
  /** The session, if this is its last message. */
  readonly sending: Sending | false;
  /** Absent where it cannot be changed. */
  readonly onEdit: (() => void) | undefined;
  /** Present while it waits for the connection. */
  readonly onWithdraw: (() => void) | undefined;
}

/** What the person said: a muted bubble on the end side. */
export function questionView({ text, files }: Question, context: QuestionContext): TemplateResult {
  const { view, editing, sending, onEdit, onWithdraw } = context;
  return html`
    <article part="message user" class=${editing ? "message user editing" : "message user"}>
      <span class="visually-hidden">${strings.you}</span>
      ${files.length === 0 ? nothing : view.files(files, sending)}
      <div class="said">
        ${
          // Always there, so that a bubble has the same width while an answer comes and afterwards.
          iconButton("edit", strings.editMessage, icons.edit, () => onEdit?.(), !onEdit || !!onWithdraw)
        }
        ${text === "" ? nothing : html`<div class="bubble" dir="auto">${text}</div>`}
      </div>
      ${onEdit && onWithdraw ? queuedView(onEdit, onWithdraw) : nothing}
    </article>
  `;
}

function queuedView(onEdit: () => void, onWithdraw: () => void): TemplateResult {
  return html`
    <div part="queued" class="note queued">
      ${strings.queued}
      <span>
        ${smallButton("edit", strings.change, onEdit)}
        ${smallButton("take-back", strings.takeBack, onWithdraw)}
      </span>
    </div>
  `;
}

/** What the agent did and said, without a bubble. */
export function replyView(reply: Reply, context: ReplyContext): TemplateResult {
  const shown = shownOf(reply, context.view.modes);
  const streaming = reply.status === "streaming";
  return html`
    <article part="message assistant" class="message assistant" aria-busy=${streaming}>
      <span class="visually-hidden">${strings.agentSaid(context.agent)}</span>
      ${blocksView(shown, context.view)}
      ${streaming && isSilent(shown) ? waiting : nothing}
      ${streaming ? nothing : outcomeView(reply, context)}
    </article>
  `;
}

const waiting = html`<div class="waiting" role="presentation"><span></span></div>`;

/** Whether nothing on the screen shows that the agent works. */
function isSilent({ blocks }: Reply): boolean {
  const last = blocks.at(-1);
  if (last?.type === "text") return last.text.trim() === "";
  if (last?.type === "thinking") return last.endedAt !== undefined;
  return !blocks.some((block) => block.type === "tool" && block.status === "running");
}

function outcomeView(reply: Reply, context: ReplyContext): TemplateResult {
  const text = replyText(reply);
  const note = reply.forgotten ? strings.forgotten(context.agent) : noteOf(reply, text);
  return html`
    ${note === undefined ? nothing : html`<p part="note" class="note">${note}</p>`}
    ${reply.failure ? failureView(reply.failure, context) : nothing}
    ${answerActions(reply, text, context)}
  `;
}

function answerActions(reply: Reply, text: string, { view, onRetry }: ReplyContext): TemplateResult | typeof nothing {
  const { id, failure } = reply;
  const copied = view.isCopied(id);
  const again = failure ? undefined : onRetry;
  if (text === "" && !again) return nothing;
  const copy = ({ currentTarget }: MouseEvent) => {
    const button = currentTarget as HTMLElement;
    void view.copy(button, id, text, drawnAnswer(button));
  };
  return html`
    <div class="answer-actions">
      ${
        text === ""
          ? nothing
          : iconButton("copy", copied ? strings.copied : strings.copyAnswer, copied ? icons.check : icons.copy, copy)
      }
      ${again ? iconButton("ask-again", strings.askAgain, icons.retry, again) : nothing}
      ${text === "" ? nothing : view.feedback(reply)}
    </div>
  `;
}

/** What the answer with the clicked button looks like. */
function drawnAnswer(button: Element): Iterable<Element> {
  const message = button.closest(".message");
  return message?.querySelectorAll(".markdown") ?? [];
}

/** A sentence about an answer that did not end by itself. */
function noteOf({ status, finishReason }: Reply, text: string): string | undefined {
  if (status !== "done") return undefined;
  switch (finishReason) {
    case "stopped":
      return strings.stopped;
    case "length":
      return strings.cutByLength;
    case "content_filter":
      return strings.cutByFilter;
    case "max_turns":
      return strings.cutByTurns;
    default:
      return text === "" ? strings.emptyAnswer : undefined;
  }
}
