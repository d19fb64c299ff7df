/** The whole screen of the chat, as a pure function of the element's state. */

import { html, nothing, type TemplateResult } from "lit";
import { guard } from "lit/directives/guard.js";
import { failureText } from "../i18n/strings.ts";
import { missingParts } from "../loading/missing.ts";
import { drawShortText, takeStart } from "../markdown/short-text.ts";
import type { Client } from "../session/client.ts";
import type { ChatContext, ListView, ShownAgent } from "./context.ts";
import { SENTENCE_END } from "./controllers/announcer.ts";
import { iconButton, retryButton, smallButton } from "./controls.ts";
import type { ComposerAction } from "./extensions.ts";
import { icons } from "./icons.ts";
import { keepTyping } from "./keys.ts";
import { loadPartEventually, openLarge } from "./lazy-parts.ts";
import { liveText } from "./live-text.ts";
import type { MessageEditor } from "./message-list.ts";
import { renderSuggestions } from "./suggestions.ts";
import type { Talk } from "./talk.ts";

const FIRST_SENTENCE_END = new RegExp(`${SENTENCE_END.source}|\\n`, "u");

/** Starts a new conversation. */
export const RESET_SHORTCUT = "Ctrl+Shift+O";

export interface ScreenView {
  readonly context: ChatContext;
  /** Absent if the element has no server. */
  readonly client: Client | undefined;
  /** Absent until it is known. */
  readonly shown: ShownAgent | undefined;
  readonly direction: "ltr" | "rtl";
  /** Buttons that the page adds to the composer. */
  readonly composerActions: readonly ComposerAction[];
  /** Replaces the agent's own disclaimer. */
  readonly disclaimer: string;
  /** Messages that the page suggests to the user. */
  readonly suggested: readonly string[];
  /** Draws the messages. Absent until its code is loaded. */
  readonly talk: Talk | undefined;
  /** Shown in place of the message that is being edited. */
  readonly editor: MessageEditor | undefined;
  /** Absent if the chat does not list conversations. */
  readonly list: ListView | undefined;
  readonly isDragging: boolean;
  readonly isKeyPromptMissing: boolean;
  readonly announcements: TemplateResult;
  readonly onKeyDown: (event: KeyboardEvent) => void;
}

/**
 * The CSS parts of `<agent-chat>`, in this file and in the components inside:
 *
 * @csspart header - The bar at the top.
 * @csspart theme-toggle - The button for light, dark and the theme of the system.
 * @csspart list - The button that shows the list of conversations, unless it is a column.
 * @csspart conversations - The list of conversations.
 * @csspart conversation - One of its rows.
 * @csspart close-list - The button that closes the list.
 * @csspart end-search - The button that ends a search without results.
 * @csspart rename - The button that renames a conversation.
 * @csspart export - The button that saves a conversation as Markdown.
 * @csspart delete - The button that deletes a conversation.
 * @csspart forget-all - The button that deletes all conversations.
 * @csspart keep-all - The button that keeps them.
 * @csspart reset - The button for a new conversation.
 * @csspart forget-key - The button that forgets the saved key.
 * @csspart messages - The conversation, which scrolls.
 * @csspart message - One message; with `user` or `assistant`.
 * @csspart user - A message of the user.
 * @csspart assistant - A message of the agent.
 * @csspart page - A message of your page.
 * @csspart name - The speaker's name, if your page gives one.
 * @csspart markdown - The text of an answer.
 * @csspart code - A block of code, with its header.
 * @csspart table - The box in which a table scrolls.
 * @csspart source-mark - The number of a source in a text.
 * @csspart source-card - The card that it opens.
 * @csspart sources - The list of sources below an answer.
 * @csspart steps - Consecutive thoughts and tool calls. From three on they fold into one line.
 * @csspart thinking - One thought, which opens and closes.
 * @csspart tool - One tool call, which opens and closes.
 * @csspart approval - The card that asks about tool calls.
 * @csspart approve - Its button that approves a call.
 * @csspart approve-all - Its button that approves all of them.
 * @csspart decline - Its button that declines a call.
 * @csspart cancel-decline - Its button that leads back from the reason of a decline.
 * @csspart edit-arguments - Its button that changes the arguments.
 * @csspart remove-element - A button that removes an element of a list in them.
 * @csspart add-element - A button that adds an element to such a list.
 * @csspart show-arguments - Its button that shows the arguments as the tool gets them.
 * @csspart ask-me-again - Its button that makes the agent ask once more.
 * @csspart note - A sentence about an answer that was cut short.
 * @csspart error - A failure.
 * @csspart retry - The button to try again.
 * @csspart continue - The button that continues a cut answer.
 * @csspart edit - The button that edits a message of the user, also a pending one.
 * @csspart queued - The line below a message that waits for the connection.
 * @csspart withdraw - The button that removes a waiting message, or a pending one.
 * @csspart alternatives - The way to other answers, and to earlier versions of a message.
 * @csspart previous - The button to the one before.
 * @csspart next - The button to the one after.
 * @csspart ask-again - The button for another answer.
 * @csspart copy - A button that copies.
 * @csspart rate-up - Thumbs up.
 * @csspart rate-down - Thumbs down.
 * @csspart feedback-form - The form that asks what was wrong.
 * @csspart time - The time of a message, below it, or of an answer's end, beside its buttons.
 * @csspart separator - The day and time of a message after half an hour's pause, on another day, or of the first one if that is not today.
 * @csspart empty - The greeting of an empty conversation.
 * @csspart suggestions - The list of suggested messages.
 * @csspart suggestion - One suggested message.
 * @csspart jump - The button to the newest text.
 * @csspart pending - The messages that wait for the end of the answer.
 * @csspart show-pending - The button that shows them, if there is room for one line only.
 * @csspart send-pending - The button that sends them now, or anyway.
 * @csspart connection - The line about a lost connection.
 * @csspart missing - The line about parts of the chat that cannot be loaded.
 * @csspart reload - Its button that loads the page again.
 * @csspart closed - The line about a conversation that was closed.
 * @csspart undo - The button that brings it, or a deleted one, back.
 * @csspart editor - The place of a message that is being edited: a card and a line.
 * @csspart editing - The line below a message that is being edited.
 * @csspart cancel-edit - The button that leaves the message as it was.
 * @csspart send-edit - The button that sends the edited message.
 * @csspart composer - The card with the text field, also in the place of a message that is being edited.
 * @csspart input - The text field.
 * @csspart attach - The button for files.
 * @csspart attachments - The files of a message.
 * @csspart attachment - One file.
 * @csspart lightbox - The dialog that shows an image, a wide table or a wide program large.
 * @csspart previous-image - Its button to the image before.
 * @csspart next-image - Its button to the image after.
 * @csspart close-image - Its button that closes it.
 * @csspart remove - The button that removes a file.
 * @csspart unfold - A long text that was pasted, as a button that puts it into the text field.
 * @csspart upload - The line below files that are being sent.
 * @csspart refusals - The reasons why files were refused.
 * @csspart dismiss - The button that closes the reasons, or the line about parts.
 * @csspart send - The button that sends.
 * @csspart stop - The button that stops the answer.
 * @csspart disclaimer - The sentence below the composer.
 * @csspart sign-in - The card of users who have to sign in first.
 * @csspart sign-in-button - Its button.
 * @csspart signed-in - The line with the user's name.
 * @csspart sign-out - Its button.
 * @csspart links - The links of the agent's owner below it.
 * @csspart link - One of them.
 * @csspart logo - The owner's logo, in the header and in the greeting.
 * @csspart key-form - The form that asks for a key.
 */
export function renderScreen(screen: ScreenView): TemplateResult {
  const { client, context, onKeyDown } = screen;
  const { strings } = context;
  const isRefused = client?.isHidden && client.refusal;
  const isEmpty = !!isRefused || (!client?.session.messages.length && !client?.library.isRestoring);
  const disclaimer = screen.disclaimer || screen.shown?.disclaimer;
  const keyDown = (event: KeyboardEvent) => {
    keepTyping(event);
    onKeyDown(event);
  };
  const classes = [
    "chat",
    isEmpty ? "is-empty" : client?.isHidden ? "is-unknown" : "",
    client?.key.prompt ? "is-locked" : "",
    screen.list && screen.list.others > 0 && !client?.isHidden ? "is-listed" : "",
  ];
  return html`
    <div
      class=${classes.join(" ").trim()}
      lang=${strings.lang}
      dir=${screen.direction}
      @keydown=${keyDown}
      @keypress=${keepTyping}
      @keyup=${keepTyping}
    >
      ${renderHeader(screen)} ${renderList(screen)}
      <div
        part="messages"
        class="scroller"
        role="log"
        aria-live="off"
        aria-label=${strings.conversation}
        aria-describedby="conversation-keys"
        tabindex="0"
        ?inert=${screen.list?.isOpen}
        @click=${(event: Event) => void openLarge(event, context)}
      >
        <div class="column">
          ${isEmpty ? renderStart(screen) : nothing}
          ${client && !isEmpty ? (screen.talk?.render(client, screen) ?? renderAsked(client)) : nothing}
        </div>
      </div>
      <span id="conversation-keys" hidden>${strings.conversationKeys}</span>
      <div class="dock" ?inert=${screen.list?.isOpen}>
        ${!isEmpty && screen.talk?.scroll.isAway ? renderJump(screen, client?.session.status === "running") : nothing}
        ${client?.library.canUndo ? renderClosed(context) : nothing}
        ${client ? renderStatus(client, context, isEmpty) : nothing} ${renderMissingParts(client, context)}
        <slot name="before-composer"></slot>
        ${client ? renderDock(client, screen, isEmpty) : nothing}
        <slot name="footer">
          ${
            disclaimer
              ? html`<p part="disclaimer" class="disclaimer" dir="auto">
                  ${guard([disclaimer], () => drawShortText(disclaimer))}
                </p>`
              : nothing
          }
          ${screen.shown?.links}
        </slot>
        ${screen.shown?.who}
      </div>
      ${
        // While a message is being edited, files can go to its editor or to the composer: the overlay would hide both.
        screen.isDragging && !screen.editor?.isConnected ? renderDropOverlay(context) : nothing
      }
      ${screen.announcements}
    </div>
  `;
}

/** The agent's name, and the buttons for the whole conversation. */
function renderHeader({ context, client, list, shown }: ScreenView): TemplateResult {
  const { strings, actions, nextTheme, headingLevel } = context;
  const [themeLabel, themeIcon] = {
    light: [strings.toLight, icons.sun] as const,
    dark: [strings.toDark, icons.moon] as const,
    auto: [strings.toAuto, icons.screen] as const,
  }[nextTheme];
  const isEmpty = !client?.session.messages.length;
  const { name = "", agent = client?.phase === "connecting" ? "" : strings.fallbackAgent } = shown ?? {};
  return html`
    <div part="header" class="header" ?inert=${list?.isOpen}>
      <slot name="header-start"></slot>
      <div class="who">
        <slot name="avatar">${shown?.logo ?? html`<span class="avatar">${icons.spark}</span>`}</slot>
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
        ${
          list && list.count > 0 && !client?.isHidden
            ? iconButton("list", strings.conversations, icons.list, () => actions.toggleList(), {
                pressed: list.isOpen,
              })
            : nothing
        }
        ${iconButton("theme-toggle", themeLabel, themeIcon, () => actions.toggleTheme())}
        ${iconButton("reset", strings.newConversation, icons.compose, () => actions.closeConversation(), { disabled: isEmpty, shortcut: RESET_SHORTCUT })}
        <slot name="header-end"></slot>
      </div>
    </div>
  `;
}

/** All conversations of the user: a column on a wide page, elsewhere over the chat. */
function renderList({ context, client, list }: ScreenView): TemplateResult | typeof nothing {
  if (!list || !client?.library.hasKept || client.isHidden) return nothing;
  void loadPartEventually("agent-chat-conversations");
  return html`<agent-chat-conversations
    .context=${context}
    .library=${client.library}
    .shown=${client.library.shownId}
    .user=${client.user}
    .isOpen=${list.isOpen}
  ></agent-chat-conversations>`;
}

/** The content of a conversation without messages. */
function renderStart({ client, context, shown }: ScreenView): unknown {
  if (!client) return renderUnreachable(context);
  if (client.key.prompt) return nothing;
  if (client.phase === "connecting") return connectingView;
  if (client.library.absent?.why === "unreadable") return renderFailure(context.strings.notShown, context);
  if (/ready|login/.test(client.phase)) return [renderGreeting(shown, context), shown?.signIn];
  const { refusal } = client;
  const retry = refusal?.retryable ? () => void client.ask() : undefined;
  if (refusal) return renderFailure(failureText(refusal, context.strings), context, retry);
  return renderUnreachable(context, () => client.reconnect.retryNow());
}

function renderGreeting(shown: ShownAgent | undefined, { strings }: ChatContext): TemplateResult {
  const hour = new Date().getHours();
  const part = hour < 5 || hour > 17 ? "evening" : hour < 12 ? "morning" : "afternoon";
  const welcome = shown?.welcome ?? strings.welcome(part);
  return html`
    <div part="empty" class="greeting">
      <slot name="empty">
        ${shown?.logo ?? html`<span class="mark">${icons.spark}</span>`} ${guard([welcome], () => renderWelcome(welcome))}
      </slot>
    </div>
  `;
}

/** Shows the first sentence, or line, in large type. */
function renderWelcome(text: string): TemplateResult {
  const rest = drawShortText(text.trim());
  const words = rest.textContent ?? "";
  const end = words.search(FIRST_SENTENCE_END);
  const first = takeStart(rest, end < 0 ? words.length : end);
  takeStart(rest, /^\s*/.exec(rest.textContent ?? "")?.[0].length ?? 0);
  return html`
    <p class="welcome" dir="auto">${first}</p>
    ${rest.textContent ? html`<p class="more" dir="auto">${rest}</p>` : nothing}
  `;
}

/** Placeholder for the greeting. */
const connectingView = html`
  <div class="greeting"><span class="bone"></span></div>
`;

/** The user's last question, shown until the code that draws messages is loaded. */
function renderAsked({ session }: Client): TemplateResult | typeof nothing {
  const { busy, lastQuestion: { text, at = 0 } = {} } = session;
  // A conversation from before this page load appears all at once, when its messages can be drawn.
  if (!text || !(busy || at > performance.timeOrigin)) return nothing;
  return html`
    <div class="undrawn">
      <p class="bubble" dir="auto">${text}</p>
      <span class="bone"></span>
    </div>
  `;
}

/** Replaces a part that cannot be shown because the server does not answer. */
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

/** The line above the composer with the button that brings back the closed conversation. */
function renderClosed({ strings, actions }: ChatContext): TemplateResult {
  return html`
    <div part="closed" class="status-line">
      <p>${strings.closed}</p>
      ${smallButton("undo", strings.undo, () => actions.undo())}
    </div>
  `;
}

/** The line above the composer about a connection problem. Not a live region, because it counts seconds. */
function renderStatus(
  { reconnect, phase, refusal }: Client,
  context: ChatContext,
  isEmpty: boolean,
): TemplateResult | typeof nothing {
  // Without messages, `renderStart` already shows the refusal, or that the server does not answer.
  if (isEmpty && (refusal || phase === "unreachable")) return nothing;
  const { offline, unreachable, connecting, tryingAgainIn, tryNow } = context.strings;
  const { isOffline } = reconnect;
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

/** The line above the composer that says that parts of the chat cannot be loaded. */
function renderMissingParts(client: Client | undefined, { strings }: ChatContext): TemplateResult | typeof nothing {
  const { why } = missingParts;
  // Without a connection, that is the reason, and `renderStatus` already says so.
  if (!why || (why === "blocked" && client?.reconnect.state !== "online")) return nothing;
  return html`
    <div part="missing" class="status-line" role="alert">
      ${icons.alert}
      <p>${why === "gone" ? strings.outOfDate : strings.partsMissing}</p>
      ${smallButton("reload", html`${icons.retry}${strings.reload}`, () => location.reload())}
      ${why === "blocked" ? iconButton("dismiss", strings.dismiss, icons.close, () => missingParts.dismiss()) : nothing}
    </div>
  `;
}

/** While a key is asked for, the composer is hidden but not removed, so that no draft is lost. */
function renderDock(client: Client, screen: ScreenView, isEmpty: boolean): TemplateResult {
  const { info, session } = client;
  const { context, suggested } = screen;
  const asksForKey = client.key.prompt !== undefined;
  const maySuggest = isEmpty || (!session.busy && !client.library.isRestoring);
  // The agent's own suggestions are only for the user's first message.
  const offered = suggested.length > 0 || (!isEmpty && session.lastQuestion) ? suggested : screen.shown?.suggestions;
  const suggestions = (maySuggest && offered) || [];
  return html`
    ${asksForKey ? renderKeyPrompt(client, screen) : nothing} ${renderPending(client, context)}
    <agent-chat-composer
      ?hidden=${asksForKey}
      .context=${context}
      .info=${info}
      .ownActions=${screen.composerActions}
      .session=${session}
      .isBusy=${session.busy && !session.isQueued}
      .isAsking=${session.writingDeclines}
      .isStopping=${session.status === "stopping"}
    ></agent-chat-composer>
    ${asksForKey ? nothing : renderSuggestions(suggestions, context)}
  `;
}

/** The messages that wait for the end of the answer. */
function renderPending({ session, isHidden }: Client, context: ChatContext): TemplateResult | typeof nothing {
  const { queued } = session;
  if (queued.length === 0 || isHidden) return nothing;
  void loadPartEventually("agent-chat-pending");
  return html`<agent-chat-pending
    .context=${context}
    .session=${session}
    .list=${queued}
    .status=${session.status}
  ></agent-chat-pending>`;
}

function renderKeyPrompt({ key, info, session, isCheckingKey }: Client, screen: ScreenView): TemplateResult {
  const { context, isKeyPromptMissing } = screen;
  // Only a reload helps if the file is gone from the server; `renderMissingParts` already offers that.
  if (isKeyPromptMissing && missingParts.why === "gone") return html``;
  if (isKeyPromptMissing) return renderUnreachable(context, () => context.actions.loadKeyPrompt());
  return html`<agent-chat-key-prompt
    .context=${context}
    .name=${info?.name ?? context.strings.fallbackAgent}
    .prompt=${key.prompt}
    .isChecking=${isCheckingKey}
    .isMessageWaiting=${session.status === "locked"}
  ></agent-chat-key-prompt>`;
}

/** The button to the end of the conversation. It also says whether an answer is being written there. */
function renderJump({ context, talk }: ScreenView, isWriting = false): TemplateResult {
  const { agent, strings, actions } = context;
  const text = talk?.scroll.isNextUnseen ? strings.nextAnswering : strings.writing(agent);
  return html`
    <button type="button" part="jump" class="small-button jump" @click=${() => actions.jumpToEnd()}>
      ${icons.down}<span class=${talk?.scroll.isNextUnseen ? "" : "visually-hidden"}>${isWriting ? text : nothing}</span>
      <span class="visually-hidden">${strings.jump}</span>
    </button>
  `;
}

/** Covers the whole chat while files are dragged over it. */
function renderDropOverlay({ strings }: ChatContext): TemplateResult {
  return html`
    <div class="drop" aria-hidden="true">
      ${strings.dropHere}
    </div>
  `;
}
