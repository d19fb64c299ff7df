/** The conversation. Messages are immutable, so only those that have changed are redrawn. */

import { html, nothing, type ReactiveController, type ReactiveControllerHost, type TemplateResult } from "lit";
import { guard } from "lit/directives/guard.js";
import { keyed } from "lit/directives/keyed.js";
import type { ChatSession } from "../conversations/chat-session.ts";
import { alternativesOf } from "../conversations/conversation.ts";
import { exchangesOf, type Message, textOf } from "../conversations/messages.ts";
import type { EditedMessage } from "../conversations/tab-slot.ts";
import { daysSince, formatRecent } from "../i18n/format.ts";
import type { Client } from "../session/client.ts";
import type { ChatContext } from "./context.ts";

/** Characters drawn in one go, but at least one message: some 7 ms of work, and 30 ms on a phone. */
const CHARACTERS_AT_A_TIME = 2_000;

/** After this time without a message, the next one shows when it was sent. */
const PAUSE_MS = 30 * 60_000;

/** Shown in place of a message that is being edited. */
export interface MessageEditor extends HTMLElement {
  /** Absent for the composer below the conversation. */
  readonly edits: EditedMessage | undefined;
}

export interface MessageListView {
  readonly context: ChatContext;
  /** Index of the first message that is drawn. */
  readonly firstDrawn: number;
  readonly editor: MessageEditor | undefined;
  /** Messages that the page suggests, in place of the agent's suggestions. */
  readonly suggested: readonly string[];
}

interface ExchangeView extends MessageListView {
  /** Whether the agent can continue an answer that was cut. */
  readonly mayGoOn: boolean;
  /** Whether the agent's suggestions are shown. */
  readonly maySuggest: boolean;
  readonly today: string;
}

export function renderMessages(
  { session, library, info }: Pick<Client, "session" | "library" | "info">,
  view: MessageListView,
): TemplateResult {
  const { earlierCut, notKept } = view.context.strings;
  const today = new Date().toDateString();
  // Messages of other conversations may have the same ids.
  const editor = view.editor && view.editor.edits?.conversation === library.shownId ? view.editor : undefined;
  return html`
    ${session.value.isCut ? renderNote(earlierCut) : nothing} ${library.isNotKept ? renderNote(notKept) : nothing}
    ${
      // Each exchange keeps its index: messages change only at the end, and exchanges not drawn yet are `nothing`.
      exchangesOf(session.messages).map(({ id, first, messages }) => {
        if (first < view.firstDrawn) return nothing;
        // Only the last exchange changes with a token.
        const isLast = messages.at(-1) === session.messages.at(-1);
        const { busy, isQueued, canRetry } = session;
        const mayGoOn = info?.continue === true;
        const isFree = !busy && !library.isRestoring && session.waitingCalls.length === 0;
        const maySuggest = isLast && isFree && view.suggested.length === 0;
        const inputs = [
          session,
          mayGoOn,
          view.context,
          editor,
          busy,
          isLast,
          isLast && isQueued,
          isLast && canRetry,
          maySuggest,
          today,
        ];
        return keyed(
          id,
          guard([...inputs, ...messages], () =>
            renderExchange(messages, first, session, { ...view, editor, mayGoOn, maySuggest, today }),
          ),
        );
      })
    }
  `;
}

/**
 * The day and time of a message after a pause, or on another day than the last message that is not an answer (for the
 * first: than today). Answers have no separator, because they are dated at their end.
 */
function renderSeparator({ role, at }: Message, before: readonly Message[], lang: string): unknown {
  if (role === "assistant" || !at) return nothing;
  const { at: said = Date.now() } = before.findLast((it) => it.role !== "assistant") ?? {};
  if (at - (before.at(-1)?.at ?? at) < PAUSE_MS && daysSince(said) === daysSince(at)) return nothing;
  const iso = new Date(at).toISOString();
  return html`<time part="separator" class="separator" datetime=${iso}>${formatRecent(at, lang)}</time>`;
}

function renderExchange(
  messages: readonly Message[],
  first: number,
  session: ChatSession,
  view: ExchangeView,
): TemplateResult {
  const { context, today } = view;
  const { lang } = context.strings;
  return html`<section class="exchange">
    ${messages.map((message, at) => [
      guard([message, context, today], () => renderSeparator(message, session.messages.slice(0, first + at), lang)),
      keyed(message.id, renderMessage(message, session, view)),
    ])}
  </section>`;
}

function renderNote(text: string): TemplateResult {
  return html`<p part="note" class="note">${text}</p>`;
}

function renderMessage(
  message: Message,
  session: ChatSession,
  { context, editor, mayGoOn, maySuggest }: ExchangeView,
): TemplateResult | typeof nothing {
  // The page may have added messages after it.
  const isLast = message === session.lastAnswer;
  const isLastQuestion = message === session.lastQuestion;
  const isQueued = session.isQueued && (isLast || isLastQuestion);
  // Its question is not even sent yet.
  if (message.role === "assistant" && isQueued) return nothing;
  return html`<agent-chat-message
    .context=${context}
    .message=${message}
    .canRetry=${isLast && session.canRetry}
    .canDecide=${isLast && session.waitingCalls.length > 0}
    .canContinue=${isLast && mayGoOn && session.canContinue}
    .canEdit=${message.role === "user" && session.canEdit(message)}
    .canSuggest=${isLast && maySuggest}
    .isQueued=${isQueued}
    .editor=${message.id === editor?.edits?.id ? editor : undefined}
    .isSending=${isLastQuestion && session.isUnanswered}
    .alternatives=${alternativesOf(session.value, message)}
    .canSwitch=${!session.busy}
  ></agent-chat-message>`;
}

/**
 * Draws a long conversation in pieces, from its end: drawn at once, it would block the page.
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

  /** Index of the first message that is drawn. */
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

/** Index of the first message of the piece that ends before `end`. A piece consists of whole exchanges. */
function pieceBefore(end: number, messages: readonly Message[]): number {
  let first = end;
  let characters = 0;
  while (first > 0 && (characters < CHARACTERS_AT_A_TIME || messages[first]?.role !== "user")) {
    first -= 1;
    const message = messages[first];
    if (message) characters += textOf(message).length;
  }
  return first;
}
