import { nothing, type PropertyDeclarations, type PropertyValues, type TemplateResult } from "lit";
import { AgentChatFeedbackEvent, AgentChatMessageEvent } from "./agent-chat.events.ts";
import type { ChatClient } from "./chat-client.ts";
import { ChatElement } from "./chat-element.ts";
import { ChatScreen } from "./chat-screen.ts";
import { ClientController } from "./client-controller.ts";
import type { OutgoingMessage } from "./conversation.ts";
import { exportConversation } from "./export-conversation.ts";
import { nextFrame } from "./frame.ts";
import type * as face from "./public-types.ts";
import type { TranscriptFormat } from "./public-types.ts";
import { ReplyWatcher } from "./reply-watcher.ts";
import type { SendOptions } from "./session-options.ts";
import { strings } from "./strings.ts";
import { agentChatStyles } from "./styles/agent-chat.styles.ts";
import { ThemeWatcher } from "./theme.ts";

/**
 * A conversation with the agent of one Parley server. Its parts: `views/frame.ts`, its CSS variables: `styles/tokens.styles.ts`.
 *
 * @tagname agent-chat
 * @attr {string} server - Base URL of the server. Default: where the script was loaded from.
 * @attr {string} api-key - A key that the site brings. Anybody who sees the page can read it. Never stored.
 * @attr {boolean} page - Fills the viewport.
 * @attr {boolean} embed - Leaves out the title and borders, for a frame that has its own.
 * @attr {"auto"|"light"|"dark"} theme - `auto` follows the `color-scheme` around the element, until the person chooses.
 * @attr {string} accent - Any CSS colour, in place of the blue. What stands on it is black or white, whichever is read better.
 * @attr {"normal"|"compact"|"spacious"} density - How much room text and messages take.
 * @attr {"round"|"soft"|"sharp"} corners - How round everything is.
 * @attr {string} lang - Language of the texts. Default: the nearest `lang` around the element, then the browser's.
 * @attr {"ltr"|"rtl"|"auto"} dir - Direction. Default: that of the language.
 * @attr {"session"|"none"} persist - `session` keeps the conversation in this tab over a reload. Files are never kept.
 * @attr {"auto"|"open"|"closed"|"hidden"} thinking - Thoughts: open while they stream, open at first, closed at first, or not shown.
 * @attr {"auto"|"open"|"closed"|"hidden"} tools - Tool calls, likewise; `auto` is closed.
 * @attr {string} actions - What can be done with messages: `all`, `none`, or words out of `copy`, `retry`, `edit`, `code` and `table`, with spaces between.
 * @attr {boolean} feedback - Thumbs on answers; the page hears of them by `agent-chat-feedback`.
 * @attr {string} disclaimer - A line below the composer, in place of the agent's own.
 * @fires {AgentChatReadyEvent} agent-chat-ready - The server has said who the agent is.
 * @fires {AgentChatMessageEvent} agent-chat-message - The person sent a message.
 * @fires {AgentChatTokenEvent} agent-chat-token - A piece of an answer's text has come.
 * @fires {AgentChatToolEvent} agent-chat-tool - A tool was called, or its call is over.
 * @fires {AgentChatDoneEvent} agent-chat-done - An answer ended.
 * @fires {AgentChatErrorEvent} agent-chat-error - An answer failed.
 * @fires {AgentChatFeedbackEvent} agent-chat-feedback - The person rated an answer, said why, or took it back.
 * @slot header-start - Before the agent's name.
 * @slot avatar - Replaces the mark beside the agent's name.
 * @slot header-end - After the header's buttons.
 * @slot empty - Replaces the greeting of an empty conversation.
 * @slot before-composer - Above the composer.
 * @slot footer - Below the composer, in place of the disclaimer.
 */
export class AgentChat extends ChatElement implements face.AgentChat {
  static override styles = agentChatStyles;

  static override properties: PropertyDeclarations = {
    apiKey: { attribute: "api-key" },
    page: { type: Boolean, reflect: true },
    embed: { type: Boolean, reflect: true },
  };

  apiKey = "";
  page = false;
  embed = false;

  readonly #screen = new ChatScreen(this, {
    send: (message, options) => void this.#send(message, options),
    draftChanged: (draft) => {
      if (this.#client) this.#client.keeper.draft = draft;
    },
    rate: (reply) => {
      this.#client?.session.rate(reply);
      this.dispatchEvent(new AgentChatFeedbackEvent(reply));
    },
    stop: () => this.stop(),
    reset: () => this.reset(),
    toggleTheme: () => this.#look.toggle(),
  });
  readonly #look = new ThemeWatcher(this);
  readonly #watcher = new ReplyWatcher(this, this.#screen.announcer);
  readonly #clients = new ClientController(this, this.#screen, this.#watcher);
  #stops = 0;

  /** Sends a message as if the person had typed it; resolves when the answer is over, rejects if there is to be none. */
  async send(text: string): Promise<void> {
    const stops = this.#stops;
    await this.#restored();
    if (text.trim() === "") throw new TypeError("send: text must not be empty");
    const session = this.#client?.session;
    if (!session) throw new Error("send: the element is not in a page");
    const sent = this.#send({ text: text.trim(), attachments: [], files: [] });
    if (!sent) throw new Error(`cannot send while the session is ${session.status}`);
    if (this.#stops > stops) this.stop();
    await sent;
  }

  /** Stops the running answer, or that to a message which is about to be sent; what was said so far stays. */
  stop(): void {
    this.#stops += 1;
    this.#client?.session.stop();
  }

  /** Starts a new conversation. */
  async reset(): Promise<void> {
    await this.#restored();
    this.#screen.clear();
    await this.#client?.reset();
  }

  /** Puts the cursor where the person goes on: the text field, or the field for the key. */
  focusComposer(): void {
    this.#screen.focus();
  }

  /** Puts a text into the text field, in place of what is there, for the person to send. */
  setDraft(text: string): void {
    this.#screen.setDraft(text);
  }

  /** Adds files to the message that is being written; resolves when they are read. What is refused is said in place. */
  async attach(files: Iterable<File>): Promise<void> {
    await this.#screen.attach(files);
  }

  /** Resolves to the conversation as it is shown, as a text; rejects for another format, and when its chunk cannot be had. */
  async exportTranscript(format: TranscriptFormat): Promise<string> {
    await this.updateComplete;
    return exportConversation(format, this.#client, this);
  }

  /** Offers messages to send with one click, until one is sent or the conversation begins anew; an empty list offers none. */
  suggest(texts: Iterable<string>): void {
    if (typeof texts === "string") throw new TypeError("suggest: texts must be a list of strings");
    this.#screen.suggest([...texts].map(String));
  }

  /** Tokens come faster than the screen draws: while an answer streams, once per frame is enough. */
  protected override async scheduleUpdate(): Promise<void> {
    if (this.#client?.session?.busy) await nextFrame();
    await super.scheduleUpdate();
  }

  protected override willUpdate(changed: PropertyValues<this>): void {
    super.willUpdate(changed);
    if (changed.has("server")) this.#clients.connect();
    else if (changed.has("apiKey")) this.#client?.giveKey(this.apiKey);
    if (changed.has("persist")) this.#clients.persist();
  }

  protected override updated(changed: PropertyValues<this>): void {
    super.updated(changed);
    // The server's page: nobody knows its language before the browser is asked.
    const { lang } = this.language.table;
    const root = document.documentElement;
    // Written only when it is another one, for the reason that `dir` is.
    if (this.page && this.getAttribute("lang") === "" && root.lang !== lang) root.lang = lang;
  }

  protected override render(): TemplateResult | typeof nothing {
    return this.#client ? this.#screen.render(this.#client, this.#look.isDark) : nothing;
  }

  get #client(): ChatClient | undefined {
    return this.#clients.client;
  }

  /** Resolves when what an earlier page has kept is there: it would undo what is asked of the element before. */
  async #restored(): Promise<void> {
    await this.updateComplete;
    await this.#client?.keeper.restored;
  }

  /** See `ChatSession.send`. The page is told of a message that is accepted, and of no other one. */
  #send(message: OutgoingMessage, options?: SendOptions): Promise<void> | undefined {
    const sent = this.#client?.session.send(message, options);
    if (!sent) return undefined;
    if (options?.replaces !== undefined) {
      this.#screen.announcer.say(`${strings.edited} ${strings.answering}`);
    }
    this.#screen.suggest([]);
    this.#screen.follow();
    this.dispatchEvent(new AgentChatMessageEvent(message.text, message.attachments.length));
    return sent;
  }
}
