/** The conversation. Messages are immutable, so of all of them only the one that has changed is redrawn. */

import { html, nothing, type ReactiveController, type ReactiveControllerHost, type TemplateResult } from "lit";
import { guard } from "lit/directives/guard.js";
import { keyed } from "lit/directives/keyed.js";
import type { ChatSession } from "../session/chat-session.ts";
import type { Client } from "../session/client.ts";
import { answerText, exchangesOf, type Message } from "../session/messages.ts";
import type { ChatContext } from "./context.ts";

/** Drawn in one go, but one message at least: some 7 ms of work, and 30 on a phone. */
const CHARACTERS_AT_A_TIME = 2_000;

interface MessageListView {
  readonly context: ChatContext;
  /** The first message that is drawn, by its place. */
  readonly firstDrawn: number;
  /** Id of the message that is being changed. */
  readonly editing: string | undefined;
}

export function renderMessages(
  { session, keeper }: Pick<Client, "session" | "keeper">,
  view: MessageListView,
): TemplateResult {
  const { earlierCut, notKept } = view.context.strings;
  return html`
    ${session.isCut ? renderNote(earlierCut) : nothing} ${keeper.isNotKept ? renderNote(notKept) : nothing}
    ${
      // Each keeps its place: messages come and go at the end only, and those before the first drawn one are still to come.
      exchangesOf(session.messages).map(({ id, first, messages }) => {
        if (first < view.firstDrawn) return nothing;
        // Only the last exchange changes with a token.
        const isLast = messages.at(-1) === session.messages.at(-1);
        const { busy, isQueued, canRetry } = session;
        const inputs = [session, view.context, view.editing, busy, isLast, isLast && isQueued, isLast && canRetry];
        return keyed(
          id,
          guard([...inputs, ...messages], () => renderExchange(messages, session, view)),
        );
      })
    }
  `;
}

function renderExchange(messages: readonly Message[], session: ChatSession, view: MessageListView): TemplateResult {
  return html`<section class="exchange">
    ${messages.map((message) => keyed(message.id, renderMessage(message, session, view)))}
  </section>`;
}

function renderNote(text: string): TemplateResult {
  return html`<p part="note" class="note">${text}</p>`;
}

function renderMessage(
  message: Message,
  session: ChatSession,
  { context, editing }: MessageListView,
): TemplateResult | typeof nothing {
  const isLast = message === session.messages.at(-1);
  const isLastQuestion = message === session.lastQuestion;
  const isQueued = session.isQueued && (isLast || isLastQuestion);
  // Its question is not even sent.
  if (message.role === "assistant" && isQueued) return nothing;
  return html`<agent-chat-message
    .context=${context}
    .message=${message}
    .canRetry=${isLast && session.canRetry}
    .canEdit=${message.role === "user" && (isQueued || session.canEdit(message))}
    .isQueued=${isQueued}
    .isEditing=${message.id === editing}
    .isSending=${isLastQuestion && session.isUnanswered}
  ></agent-chat-message>`;
}

/**
 * Has a long conversation appear from its end, and the rest of it in pieces: drawn at once it would hold the page up.
 */
export class PiecewiseDrawing implements ReactiveController {
  readonly #host: ReactiveControllerHost;
  readonly #messages: () => readonly Message[];
  #first: number | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(host: ReactiveControllerHost, messages: () => readonly Message[]) {
    this.#host = host;
    this.#messages = messages;
    host.addController(this);
  }

  /** The first message that is drawn, by its place. */
  get first(): number {
    return this.#first ?? 0;
  }

  hostConnected(): void {
    this.#host.requestUpdate();
  }

  hostUpdate(): void {
    const messages = this.#messages();
    if (messages.length === 0) this.#first = undefined;
    else this.#first ??= pieceBefore(messages.length, messages);
  }

  hostUpdated(): void {
    clearTimeout(this.#timer);
    if (this.first === 0) return;
    this.#timer = setTimeout(() => {
      const messages = this.#messages();
      this.#first = pieceBefore(Math.min(this.first, messages.length), messages);
      this.#host.requestUpdate();
    });
  }

  hostDisconnected(): void {
    clearTimeout(this.#timer);
  }
}

/** Where the piece begins that ends before a message. It has whole exchanges. */
function pieceBefore(end: number, messages: readonly Message[]): number {
  let first = end;
  let characters = 0;
  while (first > 0 && (characters < CHARACTERS_AT_A_TIME || messages[first]?.role !== "user")) {
    first -= 1;
    const message = messages[first];
    if (message) characters += message.role === "user" ? message.text.length : answerText(message).length;
  }
  return first;
}
