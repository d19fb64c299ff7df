import { html, nothing, type TemplateResult } from "lit";
import { guard } from "lit/directives/guard.js";
import type { ChatSession } from "../chat-session.ts";
import { strings } from "../strings.ts";
import type { Question } from "../transcript.ts";
import type { ViewState } from "../view-state.ts";
import { questionView, replyView } from "./message.ts";

export interface TranscriptModel {
  readonly session: ChatSession;
  /** Whether nothing of it will be there after a reload, against what the page wants. */
  readonly isLost: boolean;
  readonly agent: string;
  readonly view: ViewState;
  /** Id of the message that is being changed. */
  readonly editing: string | undefined;
  readonly onEdit: (question: Question) => void;
  readonly onWithdraw: () => void;
}

/** All messages. Those that did not change are not drawn again, however long the conversation is. */
export function transcriptView(model: TranscriptModel): unknown {
  const { session, agent, view, onEdit, onWithdraw } = model;
  const { messages, busy, canRetry, lastQuestion } = session;
  const onRetry = canRetry ? () => void session.retry() : undefined;
  const onRetryAfresh = canRetry ? () => void session.retryAfresh() : undefined;
  const undrawn = view.undrawn(messages);
  // Messages come and go at the end only, so their places tell them apart.
  const drawn = messages.map((message, index) => {
    if (index < undrawn) return nothing;
    const last = index === messages.length - 1;
    const queued = session.isQueued && (last || message === lastQuestion);
    const editing = message.id === model.editing;
    const draw = (): TemplateResult | typeof nothing => {
      if (message.role === "user") {
        const mayEdit = session.canEdit(message) || queued;
        return questionView(message, {
          view,
          editing,
          sending: message === lastQuestion && session,
          onEdit: mayEdit ? () => onEdit(message) : undefined,
          onWithdraw: queued ? onWithdraw : undefined,
        });
      }
      // Nobody is answering yet.
      if (queued) return nothing;
      // Only the last reply can be asked for again.
      return replyView(message, {
        agent,
        view,
        ...(last ? { onRetry, onRetryAfresh } : {}),
      });
    };
    const { version } = view;
    return guard([message, last, agent, version, busy, canRetry, queued, editing, strings], draw);
  });
  // Of one shape whatever there is to note: a conversation that is drawn anew loses what is selected and focused in it.
  return [noteView(session.stored.cut, strings.earlierCut), noteView(model.isLost, strings.notKept), drawn];
}

function noteView(holds: unknown, note: string): unknown {
  return holds ? html`<p part="note" class="note">${note}</p>` : nothing;
}
