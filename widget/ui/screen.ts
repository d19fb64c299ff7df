/** The whole screen of the chat: a pure function of what the element knows. */

import { html, nothing, type TemplateResult } from "lit";
import { guard } from "lit/directives/guard.js";
import { failureText, type Strings } from "../i18n/strings.ts";
import { drawInline, takeStart } from "../markdown/inline-text.ts";
import type { Client } from "../session/client.ts";
import type { ChatContext } from "./context.ts";
import { SENTENCE_END } from "./controllers/announcer.ts";
import type { ScrollPosition } from "./controllers/scroll-position.ts";
import { iconButton, retryButton, smallButton } from "./controls.ts";
import type { ComposerAction } from "./extensions.ts";
import { icons } from "./icons.ts";
import { keepTyping } from "./keys.ts";
import { openLarge } from "./lazy-parts.ts";
import { liveText } from "./live-text.ts";
import { renderMessages } from "./message-list.ts";

const FIRST_SENTENCE_END = new RegExp(`${SENTENCE_END.source}|\\n`, "u");

/** For a new conversation. */
export const RESET_SHORTCUT = "Ctrl+Shift+O";

export interface ScreenView {
  readonly context: ChatContext;
  /** Absent where the element has no server. */
  readonly client: Client | undefined;
  readonly direction: "ltr" | "rtl";
  /** Buttons that the page adds to the composer. */
  readonly composerActions: readonly ComposerAction[];
  /** In place of the agent's own. */
  readonly disclaimer: string;
  /** What the page offers to say next. */
  readonly suggested: readonly string[];
  /** The first message that is drawn, by its place. */
  readonly firstDrawn: number;
  /** Id of the message that is being changed. */
  readonly editing: string | undefined;
  readonly isDragging: boolean;
  readonly isKeyPromptMissing: boolean;
  readonly wayToEnd: ScrollPosition["wayToEnd"];
  readonly announcements: TemplateResult;
  readonly onKeyDown: (event: KeyboardEvent) => void;
}

/**
 * The parts of `<agent-chat>`, in this file and in those of all that stands inside:
 *
 * @csspart header - The bar at the top.
 * @csspart theme-toggle - The button for light, dark and the theme of the system.
 * @csspart reset - The button for a new conversation.
 * @csspart forget-key - The button that forgets the saved key.
 * @csspart messages - The conversation, which scrolls.
 * @csspart message - One message; with `user` or `assistant`.
 * @csspart user - A message of the user.
 * @csspart assistant - A message of the agent.
 * @csspart markdown - The text of an answer.
 * @csspart code - A block of code, with its header.
 * @csspart table - The box in which a table scrolls.
 * @csspart steps - Consecutive thoughts and tool calls. From three on they fold into one line.
 * @csspart thinking - One thought, which opens and closes.
 * @csspart tool - One tool call, which opens and closes.
 * @csspart note - A sentence about an answer that was cut short.
 * @csspart error - A failure.
 * @csspart retry - The button to try again.
 * @csspart edit - The button that edits a message of the user.
 * @csspart queued - The line below a message that waits for the connection.
 * @csspart withdraw - The button that removes a waiting message.
 * @csspart ask-again - The button for another answer.
 * @csspart copy - A button that copies.
 * @csspart rate-up - Thumbs up.
 * @csspart rate-down - Thumbs down.
 * @csspart feedback-form - The form that asks what was wrong.
 * @csspart empty - The greeting of an empty conversation.
 * @csspart suggestions - The list of suggested messages.
 * @csspart suggestion - One suggested message.
 * @csspart jump - The button to the newest text.
 * @csspart connection - The line about a lost connection.
 * @csspart closed - The line about a conversation that was closed.
 * @csspart undo - The button that brings it back.
 * @csspart editing - The line about the message that is being edited.
 * @csspart cancel-edit - The button that cancels editing.
 * @csspart composer - The card with the text field.
 * @csspart input - The text field.
 * @csspart attach - The button for files.
 * @csspart attachments - The files of a message.
 * @csspart attachment - One file.
 * @csspart lightbox - The dialog that shows an image, a wide table or a wide program large.
 * @csspart previous-image - Its button to the image before.
 * @csspart next-image - Its button to the image after.
 * @csspart close-image - Its button that closes it.
 * @csspart remove - The button that removes a file.
 * @csspart upload - The line below files that are being sent.
 * @csspart refusals - The reasons why files were refused.
 * @csspart dismiss - The button that closes the reasons.
 * @csspart send - The button that sends.
 * @csspart stop - The button that stops the answer.
 * @csspart disclaimer - The sentence below the composer.
 * @csspart key-form - The form that asks for a key.
 */
export function renderScreen(screen: ScreenView): TemplateResult {
  const { client, context, onKeyDown } = screen;
  const { strings } = context;
  const isRefused = client?.isHidden && client.refusal;
  const isEmpty = !!isRefused || (!client?.session.messages.length && !client?.keeper.isRestoring);
  const wayToEnd = isEmpty ? "none" : screen.wayToEnd;
  const disclaimer = screen.disclaimer || client?.info?.disclaimer;
  const keyDown = (event: KeyboardEvent) => {
    keepTyping(event);
    onKeyDown(event);
  };
  return html`
    <div
      class=${isEmpty ? `chat is-empty${client?.key.prompt ? " is-locked" : ""}` : client?.isHidden ? "chat is-unknown" : "chat"}
      lang=${strings.lang}
      dir=${screen.direction}
      @keydown=${keyDown}
      @keypress=${keepTyping}
      @keyup=${keepTyping}
    >
      ${renderHeader(screen)}
      <div
        part="messages"
        class="scroller"
        role="log"
        aria-live="off"
        aria-label=${strings.conversation}
        aria-describedby="conversation-keys"
        tabindex="0"
        @click=${(event: Event) => void openLarge(event, context)}
      >
        <div class="column">
          ${isEmpty ? renderStart(screen) : nothing} ${client && !isEmpty ? renderMessages(client, screen) : nothing}
        </div>
      </div>
      <span id="conversation-keys" hidden>${strings.conversationKeys}</span>
      <div class="dock ${wayToEnd}">
        ${wayToEnd === "shown" ? renderJump(context, client?.session.status === "running") : nothing}
        ${client?.session.canUndo ? renderClosed(context) : nothing}
        ${client ? renderStatus(client, context, isEmpty) : nothing}
        <slot name="before-composer"></slot>
        ${client ? renderDock(client, screen, isEmpty) : nothing}
        <slot name="footer">
          ${
            disclaimer
              ? html`<p part="disclaimer" class="disclaimer" dir="auto">
                  ${guard([disclaimer, strings], () => drawInline(disclaimer, strings))}
                </p>`
              : nothing
          }
        </slot>
      </div>
      ${screen.isDragging ? renderDropOverlay(context) : nothing} ${screen.announcements}
    </div>
  `;
}

/** The agent's name, and what can be done with the whole conversation. */
function renderHeader({ context, client }: ScreenView): TemplateResult {
  const { strings, actions, nextTheme, headingLevel } = context;
  const [themeLabel, themeIcon] = {
    light: [strings.toLight, icons.sun] as const,
    dark: [strings.toDark, icons.moon] as const,
    auto: [strings.toAuto, icons.screen] as const,
  }[nextTheme];
  const isEmpty = !client?.session.messages.length;
  const { name = "", agent = client?.phase === "connecting" ? "" : strings.fallbackAgent } = client?.info ?? {};
  return html`
    <header part="header" class="header">
      <slot name="header-start"></slot>
      <div class="who">
        <slot name="avatar"><span class="avatar">${icons.spark}</span></slot>
        <span class="names">
          <span class="agent" role=${agent ? "heading" : nothing} aria-level=${headingLevel - 1}>${liveText(agent)}</span>
          ${name !== "" && name !== agent ? html`<span class="app">${name}</span>` : nothing}
        </span>
      </div>
      <div class="actions">
        ${
          client?.key.isTyped
            ? iconButton("forget-key", strings.forgetKey, icons.key, () => client.forgetKey())
            : nothing
        }
        ${iconButton("theme-toggle", themeLabel, themeIcon, () => actions.toggleTheme())}
        ${iconButton("reset", strings.newConversation, icons.compose, () => actions.closeConversation(), { disabled: isEmpty, shortcut: RESET_SHORTCUT })}
        <slot name="header-end"></slot>
      </div>
    </header>
  `;
}

/** What a conversation without messages shows. */
function renderStart({ client, context }: ScreenView): TemplateResult | typeof nothing {
  if (!client) return renderUnreachable(context);
  if (client.key.prompt) return nothing;
  if (client.phase === "connecting") return connectingView;
  if (client.phase === "ready") return renderGreeting(client.info?.welcome, context);
  const { refusal } = client;
  const retry = refusal?.retryable ? () => client.askAgain() : undefined;
  if (refusal) return renderFailure(failureText(refusal, context.strings), context, retry);
  return renderUnreachable(context, () => client.reconnect.retryNow());
}

function renderGreeting(welcome: string | undefined, { strings }: ChatContext): TemplateResult {
  return html`
    <div part="empty" class="greeting">
      <slot name="empty">
        <span class="mark">${icons.spark}</span>
        ${guard([welcome, strings], () => renderWelcome(welcome ?? strings.welcome, strings))}
      </slot>
    </div>
  `;
}

/** The first sentence, or line, is large. */
function renderWelcome(text: string, strings: Strings): TemplateResult {
  const rest = drawInline(text.trim(), strings);
  const words = rest.textContent ?? "";
  const end = words.search(FIRST_SENTENCE_END);
  const first = takeStart(rest, end < 0 ? words.length : end);
  takeStart(rest, /^\s*/.exec(rest.textContent ?? "")?.[0].length ?? 0);
  return html`
    <p class="welcome" dir="auto">${first}</p>
    ${rest.textContent ? html`<p class="more" dir="auto">${rest}</p>` : nothing}
  `;
}

/** Where the greeting will be. */
const connectingView = html`
  <div class="greeting"><span class="bone"></span></div>
`;

/** Stands in the place of a part that cannot be shown, because the server does not answer. */
function renderUnreachable(context: ChatContext, onRetry?: () => void): TemplateResult {
  return renderFailure(context.strings.unreachable, context, onRetry);
}

function renderFailure(text: string, { strings }: ChatContext, onRetry?: () => void): TemplateResult {
  return html`
    <div class="greeting">
      <div part="error" class="failure" role="alert">
        ${icons.alert}
        <p>${text}</p>
        ${onRetry ? retryButton(strings.retry, onRetry) : nothing}
      </div>
    </div>
  `;
}

/** Above the composer, the way back to the conversation that was closed. */
function renderClosed({ strings, actions }: ChatContext): TemplateResult {
  return html`
    <div part="closed" class="status-line">
      <p>${strings.closed}</p>
      ${smallButton("undo", strings.undo, () => actions.undo())}
    </div>
  `;
}

/** Above the composer, what is wrong with the connection. Not a live region: it counts seconds. */
function renderStatus(
  { reconnect, phase, refusal }: Client,
  context: ChatContext,
  isEmpty: boolean,
): TemplateResult | typeof nothing {
  // Without a conversation the middle of the screen says that the server does not answer, or is not for this page.
  if (isEmpty && (refusal || phase === "unreachable")) return nothing;
  const { offline, unreachable, connecting, tryingAgainIn, tryNow } = context.strings;
  const isOffline = navigator.onLine === false;
  if (reconnect.state === "online" && !isOffline && !refusal) return nothing;
  const isWaiting = reconnect.state === "waiting";
  const problem = isOffline ? offline : refusal ? failureText(refusal, context.strings) : unreachable;
  return html`
    <div part="connection" class="status-line">
      ${icons.alert}
      <p>
        ${liveText(reconnect.state === "connecting" ? connecting : problem)}
        ${liveText(isWaiting ? tryingAgainIn(reconnect.retryIn) : undefined)}
      </p>
      ${isWaiting ? retryButton(tryNow, () => reconnect.retryNow()) : nothing}
    </div>
  `;
}

/** The composer stays where it is while a key is asked for, so that no draft is lost. */
function renderDock(client: Client, screen: ScreenView, isEmpty: boolean): TemplateResult {
  const { info, session } = client;
  const { context, suggested, editing } = screen;
  const asksForKey = client.key.prompt !== undefined;
  const maySuggest = !session.busy && !client.keeper.isRestoring && editing === undefined;
  const suggestions = (isEmpty ? info?.suggestions : maySuggest && suggested) || [];
  return html`
    ${asksForKey ? renderKeyPrompt(client, screen) : nothing}
    <agent-chat-composer
      ?hidden=${asksForKey}
      .context=${context}
      .info=${info}
      .ownActions=${screen.composerActions}
      .session=${session}
      .isBusy=${session.busy}
      .isStopping=${session.status === "stopping"}
    ></agent-chat-composer>
    ${asksForKey ? nothing : renderSuggestions(suggestions, context)}
  `;
}

/** Messages to send with one click. */
function renderSuggestions(
  texts: readonly string[],
  { strings, actions }: ChatContext,
): TemplateResult | typeof nothing {
  const suggestions = texts.filter((text) => text.trim() !== "");
  if (suggestions.length === 0) return nothing;
  return html`
    <ul part="suggestions" class="suggestions" aria-label=${strings.suggestions}>
      ${suggestions.map((text) => {
        const send = () => actions.sendSuggestion(text);
        return html`
          <li>
            <button type="button" part="suggestion" class="pill" dir="auto" @click=${send}>
              <span>${text}</span>
            </button>
          </li>
        `;
      })}
    </ul>
  `;
}

function renderKeyPrompt({ key, info, session, isCheckingKey }: Client, screen: ScreenView): TemplateResult {
  const { context, isKeyPromptMissing } = screen;
  if (isKeyPromptMissing) return renderUnreachable(context, () => context.actions.loadKeyPrompt());
  return html`<agent-chat-key-prompt
    .context=${context}
    .name=${info?.name ?? context.strings.fallbackAgent}
    .prompt=${key.prompt}
    .isChecking=${isCheckingKey}
    .isMessageWaiting=${session.status === "locked"}
  ></agent-chat-key-prompt>`;
}

/** The way back to the end, which says while an answer is written there. */
function renderJump({ agent, strings, actions }: ChatContext, isWriting = false): TemplateResult {
  return html`
    <button type="button" part="jump" class="small-button jump" @click=${() => actions.jumpToEnd()}>
      ${icons.down}<span>${isWriting ? strings.writing(agent) : strings.jump}</span>
      ${isWriting ? html`<span class="visually-hidden">${strings.jump}</span>` : nothing}
    </button>
  `;
}

/** Lies over everything while files are dragged over the element. */
function renderDropOverlay({ strings }: ChatContext): TemplateResult {
  return html`
    <div class="drop" aria-hidden="true">
      <div class="drop-card">${icons.file}<span>${strings.dropHere}</span></div>
    </div>
  `;
}
