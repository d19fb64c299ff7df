/**
 * What a conversation needs once it has begun: its messages with their Markdown, the scroll position, and announcements
 * of answers. Loaded separately, so that an empty chat is shown without all this.
 */

import type { LitElement, TemplateResult } from "lit";
import { clipboard } from "../clipboard/copying.ts";
import type { Message } from "../conversations/messages.ts";
import type { Strings } from "../i18n/strings.ts";
import { whenIdle } from "../loading/lazy.ts";
import { warmUpLexer } from "../markdown/lexer.ts";
import { MarkdownText } from "../markdown/markdown-text.ts";
import type { Client } from "../session/client.ts";
import { sheetOf } from "../styles/adopt.ts";
import markdownStyles from "../styles/markdown.css";
import messageStyles from "../styles/message.css";
import { blockKinds } from "./blocks.ts";
import { definePart } from "./chat-part.ts";
import type { ChatContext } from "./context.ts";
import type { Announcer } from "./controllers/announcer.ts";
import { AnswerAnnouncer, spokenTexts } from "./controllers/answer-announcer.ts";
import { ScrollPosition } from "./controllers/scroll-position.ts";
import { loadElement } from "./lazy-parts.ts";
import { MessageElement } from "./message.ts";
import { type MessageListView, PiecewiseDrawing, renderMessages } from "./message-list.ts";
import { tabStop } from "./tab-stop.ts";

export interface TalkOptions {
  readonly announcer: Announcer;
  readonly context: () => ChatContext;
  readonly messages: () => readonly Message[];
}

definePart("agent-chat-markdown", MarkdownText);
definePart("agent-chat-message", MessageElement);

const sheets = [messageStyles, markdownStyles].map(sheetOf);

export class Talk {
  readonly scroll: ScrollPosition;
  readonly announcer: AnswerAnnouncer;
  readonly tabStop = tabStop;
  readonly #host: LitElement;
  readonly #drawing: PiecewiseDrawing;

  /** `before`: the style sheet of the element that takes precedence over those of messages. */
  constructor(host: LitElement, before: CSSStyleSheet, { announcer, context, messages }: TalkOptions) {
    this.#host = host;
    const root = host.renderRoot as ShadowRoot;
    const adopted = [...root.adoptedStyleSheets];
    // A new list: changed in place, the old one would lack a sheet for a moment, which browsers refuse.
    root.adoptedStyleSheets = adopted.toSpliced(adopted.indexOf(before), 0, ...sheets);
    this.scroll = new ScrollPosition(host);
    this.#drawing = new PiecewiseDrawing(host, messages);
    const find = (id: string) => {
      const all = host.renderRoot.querySelectorAll<MessageElement>("agent-chat-message");
      return [...all].find(({ message }) => message.id === id);
    };
    const drawn = async (id: string) => {
      await host.updateComplete;
      return find(id);
    };
    this.announcer = new AnswerAnnouncer({ announcer, context, find, drawn });
    host.requestUpdate();
  }

  render(client: Client, view: Omit<MessageListView, "firstDrawn">): TemplateResult {
    return renderMessages(client, { ...view, firstDrawn: this.#drawing.first });
  }

  /** The text of the last answer, as it is drawn. */
  lastAnswer(strings: Strings): string {
    const texts = this.#host.renderRoot.querySelectorAll(".assistant .markdown");
    return [...spokenTexts([...texts].slice(-1), strings)].join(" ");
  }
}

warmUpLexer();
whenIdle(() => {
  void clipboard.loadEventually();
  // The stand-in for the card must be loaded before a new build of the server removes the card's file.
  void loadElement(blockKinds.approval.standIn.element);
});
