import {
  html,
  nothing,
  type PropertyDeclarations,
  type PropertyValues,
  type TemplateResult,
} from "lit";
import { keyed } from "lit/directives/keyed.js";
import { AgentChatMessageEvent, AgentChatReadyEvent } from "./agent-chat.events.ts";
import { ChatClient } from "./chat-client.ts";
import { ChatElement } from "./chat-element.ts";
import { ChatScreen } from "./chat-screen.ts";
import type { ChatSession } from "./chat-session.ts";
import type { OutgoingMessage } from "./conversation.ts";
import { nextFrame } from "./frame.ts";
import { ReplyWatcher } from "./reply-watcher.ts";
import { parseServer } from "./server-url.ts";
import { strings } from "./strings.ts";
import { agentChatStyles } from "./styles/agent-chat.styles.ts";
import { rememberedTheme, rememberTheme, ThemeWatcher } from "./theme.ts";

const NETWORK = ["online", "offline"];

/**
 * A conversation with the agent of one Parley server.
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
 * @fires {AgentChatReadyEvent} agent-chat-ready - The server has said who the agent is.
 * @fires {AgentChatMessageEvent} agent-chat-message - The person sent a message.
 * @fires {AgentChatDoneEvent} agent-chat-done - An answer ended.
 * @fires {AgentChatErrorEvent} agent-chat-error - An answer failed.
 * @slot header-start - Before the agent's name.
 * @slot header-end - After the header's buttons.
 * @slot empty - Replaces the greeting of an empty conversation.
 * @slot before-composer - Above the composer.
 * @slot footer - Below the composer.
 * @csspart header - The bar at the top.
 * @csspart theme-toggle - The button between light and dark.
 * @csspart reset - The button for a new conversation.
 * @csspart forget-key - The button that forgets the saved key.
 * @csspart messages - The scrolling transcript.
 * @csspart message - One message; with `user` or `assistant`.
 * @csspart user - A message of the person.
 * @csspart assistant - A message of the agent.
 * @csspart markdown - The text of an answer.
 * @csspart steps - Thoughts and tool calls in a row; from three on they fold into one line.
 * @csspart thinking - A collapsible thinking trace.
 * @csspart tool - A collapsible tool call.
 * @csspart note - A sentence about an answer that did not end by itself.
 * @csspart error - A failure.
 * @csspart retry - The button to try again.
 * @csspart edit - The button that changes a message of the person.
 * @csspart queued - What is said under a message that waits for the connection.
 * @csspart take-back - The button that removes such a message.
 * @csspart ask-again - The button for another answer.
 * @csspart copy - A button that copies.
 * @csspart empty - The greeting.
 * @csspart suggestions - The list of first messages.
 * @csspart suggestion - One of them.
 * @csspart jump - The button to the newest text.
 * @csspart connection - What is said while the server cannot be reached.
 * @csspart editing - What is said while a message is changed.
 * @csspart cancel-edit - The button that leaves it as it was.
 * @csspart composer - The card with the text field.
 * @csspart input - The text field.
 * @csspart attach - The button for files.
 * @csspart attachments - The files of a message.
 * @csspart attachment - One file.
 * @csspart remove - The button that takes a file out again.
 * @csspart refusals - Why files were not taken.
 * @csspart dismiss - The button that closes them.
 * @csspart send - The button that sends.
 * @csspart stop - The button that stops the answer.
 * @csspart key-form - The form that asks for a key.
 * @cssprop --agent-chat-bg - Background.
 * @cssprop --agent-chat-surface - Background of the person's messages and the composer.
 * @cssprop --agent-chat-sunken - Background of code and tool data.
 * @cssprop --agent-chat-text - Text.
 * @cssprop --agent-chat-muted - Secondary text.
 * @cssprop --agent-chat-subtle - Placeholder and times.
 * @cssprop --agent-chat-border - Separating lines.
 * @cssprop --agent-chat-border-strong - Outlines of fields.
 * @cssprop --agent-chat-accent - Buttons, focus ring.
 * @cssprop --agent-chat-on-accent - Text on the accent.
 * @cssprop --agent-chat-link - Links.
 * @cssprop --agent-chat-danger - Failures.
 * @cssprop --agent-chat-danger-bg - Background of failures.
 * @cssprop --agent-chat-success - The mark of a completed tool call.
 * @cssprop --agent-chat-radius - Corners of code and cards.
 * @cssprop --agent-chat-font - Font family.
 * @cssprop --agent-chat-font-mono - Font family of code.
 * @cssprop --agent-chat-column - Width of the reading column.
 * @cssprop --agent-chat-code-keyword - Keywords in code.
 * @cssprop --agent-chat-code-string - Strings in code.
 * @cssprop --agent-chat-code-number - Numbers and constants in code.
 * @cssprop --agent-chat-code-comment - Comments in code.
 * @cssprop --agent-chat-code-function - Names of functions in code.
 * @cssprop --agent-chat-code-type - Names of types and classes in code.
 * @cssprop --agent-chat-code-variable - Names of variables, keys and attributes in code.
 * @cssprop --agent-chat-code-inserted - Inserted lines of a diff.
 * @cssprop --agent-chat-code-deleted - Deleted lines of a diff.
 */
export class AgentChat extends ChatElement {
  static override styles = agentChatStyles;

  static override properties: PropertyDeclarations = {
    apiKey: { attribute: "api-key" },
    page: { type: Boolean, reflect: true },
    embed: { type: Boolean, reflect: true },
    persist: {},
  };

  apiKey = "";
  page = false;
  embed = false;
  persist: "session" | "none" = "session";

  readonly #screen = new ChatScreen(this, {
    send: (message) => this.#send(message),
    edit: (id, message) => this.#send(message, id),
    draftChanged: (text) => {
      if (this.#client) this.#client.draft = text;
    },
    stop: () => this.stop(),
    reset: () => this.reset(),
    toggleTheme: () => {
      this.theme = this.#look.isDark ? "light" : "dark";
      rememberTheme(this.theme);
    },
  });
  readonly #look = new ThemeWatcher(this);
  readonly #watcher = new ReplyWatcher(this, this.#screen.announcer);
  #client: ChatClient | undefined;
  #promptShown = false;
  #hadFocus = false;

  /** Sends a message as if the person had typed it; resolves when the answer has ended. */
  async send(text: string): Promise<void> {
    await this.updateComplete;
    if (text.trim() === "") throw new TypeError("send: text must not be empty");
    await this.#send({ text: text.trim(), attachments: [], files: [] });
  }

  /** Stops the running answer; what was said so far stays. */
  stop(): void {
    this.#client?.session.stop();
  }

  /** Starts a new conversation. */
  async reset(): Promise<void> {
    for (const message of this.#session?.messages ?? []) {
      if (message.role !== "user") continue;
      for (const { url } of message.files) if (url !== undefined) URL.revokeObjectURL(url);
    }
    this.#screen.clear();
    await this.#client?.session.reset();
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

  override connectedCallback(): void {
    super.connectedCallback();
    this.theme = rememberedTheme() ?? this.theme;
    for (const type of NETWORK) window.addEventListener(type, this.#network);
    this.#client?.open(this.persist !== "none");
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    for (const type of NETWORK) window.removeEventListener(type, this.#network);
    // An element that is only moved is connected again by then.
    queueMicrotask(() => {
      if (!this.isConnected) this.#client?.close();
    });
  }

  /** Tokens come faster than the screen draws: while an answer streams, once per frame is enough. */
  protected override async scheduleUpdate(): Promise<void> {
    if (this.#session?.busy) await nextFrame();
    await super.scheduleUpdate();
  }

  protected override willUpdate(changed: PropertyValues<this>): void {
    super.willUpdate(changed);
    this.#hadFocus = Boolean(this.shadowRoot?.activeElement);
    if (changed.has("server")) this.#connect();
    else if (changed.has("apiKey")) this.#client?.giveKey(this.apiKey);
    if (changed.has("persist") && this.#client) this.#client.persist = this.persist !== "none";
  }

  protected override firstUpdated(): void {
    // On touch screens a focused field would open the keyboard over the greeting.
    if (this.page && !this.embed && matchMedia("(pointer: fine)").matches) this.focusComposer();
  }

  protected override updated(changed: PropertyValues<this>): void {
    super.updated(changed);
    // The server's page: nobody knows its language before the browser is asked.
    if (this.page && this.getAttribute("lang") === "") {
      document.documentElement.lang = this.language.table.lang;
    }
    const prompted = this.renderRoot.querySelector("#key") !== null;
    if (prompted === this.#promptShown) return;
    this.#promptShown = prompted;
    // The field that had the focus is gone; its successor takes over.
    if (this.page || this.#hadFocus) this.focusComposer();
  }

  protected override render(): TemplateResult | typeof nothing {
    if (!this.#client) return nothing;
    const screen = this.#screen.render(this.#client, this.#look.isDark);
    // What was drawn in another language is drawn anew.
    return html`${keyed(this.language.table, screen)}`;
  }

  get #session(): ChatSession | undefined {
    return this.#client?.session;
  }

  #connect(): void {
    this.#client?.close();
    const client = new ChatClient({
      server: parseServer(this.server),
      givenKey: this.apiKey,
      onChange: () => {
        this.language.use();
        this.requestUpdate();
        if (this.#client !== client) return;
        this.#watcher.watch(client.session.messages);
        this.#screen.watch(client.connection);
      },
      onDraft: (text) => {
        this.#screen.draft = text;
      },
      onReady: (info) => this.dispatchEvent(new AgentChatReadyEvent(info)),
    });
    this.#client = client;
    client.open(this.persist !== "none");
  }

  /** `id`: of the message that this one replaces. */
  async #send(message: OutgoingMessage, id?: string): Promise<void> {
    const session = this.#session;
    if (!session) throw new Error("send: the element is not in a page");
    const sent = id === undefined ? session.send(message) : session.edit(id, message);
    if (id !== undefined) this.#screen.announcer.say(`${strings.edited} ${strings.answering}`);
    this.#screen.follow();
    this.dispatchEvent(new AgentChatMessageEvent(message.text, message.attachments.length));
    await sent;
  }

  readonly #network = ({ type }: Event) => {
    if (type === "online") this.#client?.redial();
    this.requestUpdate();
  };
}

declare global {
  interface HTMLElementTagNameMap {
    "agent-chat": AgentChat;
  }
}
