import { html, nothing, type TemplateResult } from "lit";
import { strings } from "../strings.ts";
import { type Question, type Reply, replyText } from "../transcript.ts";
import type { ViewState } from "../view-state.ts";
import { filesView } from "./attachment-list.ts";
import { blocksView } from "./blocks.ts";
import { failureView } from "./failure.ts";
import { iconButton } from "./header.ts";
import * as icons from "./icons.ts";

export interface ReplyContext {
  readonly agent: string;
  readonly view: ViewState;
  /** Absent where the reply cannot be asked for again. */
  readonly onRetry?: () => void;
  readonly onRetryAfresh?: () => void;
}

/** What the person said: a muted bubble on the end side. */
export function questionView({ text, files }: Question): TemplateResult {
  return html`
    <article part="message user" class="message user">
      <span class="visually-hidden">${strings.you}</span>
      ${filesView(files, "sent-files")}
      ${text === "" ? nothing : html`<div class="bubble" dir="auto">${text}</div>`}
    </article>
  `;
}

/** What the agent did and said, without a bubble. */
export function replyView(reply: Reply, context: ReplyContext): TemplateResult {
  const streaming = reply.status === "streaming";
  return html`
    <article part="message assistant" class="message assistant" aria-busy=${streaming}>
      <span class="visually-hidden">${strings.agentSaid(context.agent)}</span>
      ${blocksView(reply, context.view)}
      ${streaming && isSilent(reply) ? waiting : nothing}
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
  const note = noteOf(reply, text);
  return html`
    ${note === undefined ? nothing : html`<p part="note" class="note">${note}</p>`}
    ${reply.failure ? failureView(reply.failure, context) : nothing}
    ${text === "" ? nothing : answerActions(reply.id, text, context.view)}
  `;
}

function answerActions(id: string, text: string, view: ViewState): TemplateResult {
  const copied = view.isCopied(id);
  return html`
    <div class="answer-actions">
      ${iconButton(
        "copy",
        copied ? strings.copied : strings.copyAnswer,
        copied ? icons.check : icons.copy,
        () => view.copy(id, text),
      )}
    </div>
  `;
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
