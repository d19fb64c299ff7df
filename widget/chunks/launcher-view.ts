import { html, type LitElement, nothing, type TemplateResult } from "lit";
import type { AgentChatDoneEvent, AgentChatErrorEvent } from "../agent-chat.events.ts";
import type { AgentChat } from "../public-types.ts";
import { type Strings, strings } from "../strings.ts";
import { iconButton } from "../views/header.ts";
import * as icons from "../views/icons.ts";
import { CHAT, QUESTION } from "../views/launcher-icons.ts";

/** Parts of the chat that a page can style through the launcher: all of them. */
const CHAT_PARTS =
  "header,theme-toggle,reset,forget-key,messages,message,user,assistant,markdown,code,table,thinking,steps,tool,note,error,retry,edit,queued,take-back,ask-again,copy,rate-up,rate-down,feedback-form," +
  "empty,suggestions,suggestion,jump,connection,editing,cancel-edit,composer,input,attach,attachments,attachment,remove,upload,refusals,dismiss,send,stop,disclaimer,key-form";

/** Slots of the chat that a page can fill through the launcher. */
const CHAT_SLOTS = ["header-start", "avatar", "before-composer", "empty", "footer"];

/** The element, as far as its panel needs it. */
export interface LauncherHost extends LitElement {
  readonly server: string;
  readonly apiKey: string;
  readonly theme: string;
  readonly accent: string;
  readonly density: string;
  readonly corners: string;
  readonly strings: unknown;
  readonly persist: string;
  readonly thinking: string;
  readonly tools: string;
  readonly actions: string;
  readonly feedback: boolean;
  readonly disclaimer: string;
  readonly icon: "chat" | "spark" | "question";
  readonly label: string;
  readonly autoOpen: number | string | null;
  readonly preview: string;
  readonly previewAfter: number | string | null;
  readonly language: { readonly table: Strings };
  readonly chat: AgentChat | null;
  toggle(): Promise<void>;
}

export interface LauncherModel {
  readonly open: boolean;
  /** Whether the panel has a chat already. */
  readonly built: boolean;
  readonly wide: boolean;
  /** Answers that came while the panel was closed. */
  readonly unread: number;
  /** What the bubble beside the closed launcher says, if there is one. */
  readonly preview: string;
  readonly announcements: TemplateResult;
  readonly onToggle: () => void;
  readonly onClose: () => void;
  /** The browser has closed the panel. */
  readonly onClosed: () => void;
  readonly onWide: () => void;
  readonly onDismiss: () => void;
  /** An answer has ended, well or not. */
  readonly onAnswer: (event: AgentChatDoneEvent | AgentChatErrorEvent) => void;
  readonly onKeyDown: (event: KeyboardEvent) => void;
}

const FOLD = "M6 9.5l6 6l6-6";
const EXPAND = "M13.5 5H19v5.5M10.5 19H5v-5.5M19 5l-5.5 5.5M5 19l5.5-5.5";
const SHRINK = "M19 10.5h-5.5V5M5 13.5h5.5V19M13.5 10.5l6-6M10.5 13.5l-6 6";

/** The button, the panel that it opens, and the bubble beside it. */
export function launcherView(host: LauncherHost, model: LauncherModel): TemplateResult {
  return html`
    <div class="launcher-root" lang=${strings.lang} @keydown=${model.onKeyDown}>
      <dialog
        id="panel"
        part="panel"
        class=${model.wide ? "panel wide" : "panel"}
        aria-label=${strings.chatPanel}
        @close=${model.onClosed}
        @agent-chat-done=${model.onAnswer}
        @agent-chat-error=${model.onAnswer}
      >
        ${model.built ? chatView(host, model) : nothing}
      </dialog>
      ${model.preview && !model.open ? previewView(model) : nothing} ${buttonView(host, model)}
      ${model.announcements}
    </div>
  `;
}

function buttonView(host: LauncherHost, { open, unread, onToggle }: LauncherModel): TemplateResult {
  const { icon, label } = host;
  const name = open ? strings.closeChat : label || strings.openChat;
  const drawn = icon === "spark" ? icons.spark : icons.icon(icon === "question" ? QUESTION : CHAT);
  // The second click of two meant the same as the first, and has taken the focus.
  const onClick = ({ detail }: MouseEvent) => (detail < 2 ? onToggle() : open && host.chat?.focusComposer());
  return html`
    <button
      type="button"
      part="launcher"
      class=${open ? "launcher is-open" : "launcher"}
      aria-label=${unread > 0 ? `${name}, ${strings.unread(unread)}` : name}
      aria-expanded=${open}
      aria-controls="panel"
      @click=${onClick}
    >
      ${open ? icons.icon(FOLD) : html`<slot name="launcher-icon">${drawn}</slot>`}
      ${label && !open ? html`<span class="label">${label}</span>` : nothing}
      ${unread > 0 ? html`<span part="unread" class="unread">${unread}</span>` : nothing}
    </button>
  `;
}

/** Before the button, so that who comes by keyboard reads first what the button is for. */
function previewView({ preview, onToggle, onDismiss }: LauncherModel): TemplateResult {
  return html`
    <div part="preview" class="preview">
      <button type="button" class="preview-text" @click=${onToggle}>
        <span dir="auto">${preview}</span>
      </button>
      ${iconButton("preview-close", strings.hidePreview, icons.close, onDismiss)}
    </div>
  `;
}

function chatView(host: LauncherHost, { wide, onWide, onClose }: LauncherModel): TemplateResult {
  const sizeButton = iconButton(
    "expand",
    wide ? strings.shrink : strings.expand,
    icons.icon(wide ? SHRINK : EXPAND),
    onWide,
  );
  return html`
    <agent-chat
      exportparts=${CHAT_PARTS}
      .server=${host.server}
      .apiKey=${host.apiKey}
      .theme=${host.theme}
      .accent=${host.accent}
      .density=${host.density}
      .corners=${host.corners}
      .strings=${host.strings}
      .persist=${host.persist}
      .thinking=${host.thinking}
      .tools=${host.tools}
      .actions=${host.actions}
      .feedback=${host.feedback}
      .disclaimer=${host.disclaimer}
    >
      ${CHAT_SLOTS.filter((name) => host.querySelector(`:scope > [slot="${name}"]`)).map(
        (name) => html`<slot name=${name} slot=${name}></slot>`,
      )}
      <span slot="header-end" class="panel-buttons">
        <slot name="header-end"></slot>
        ${sizeButton} ${iconButton("close", strings.closeChat, icons.close, onClose)}
      </span>
    </agent-chat>
  `;
}
