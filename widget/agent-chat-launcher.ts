import { nothing, type PropertyDeclarations } from "lit";
import { ChatElement } from "./chat-element.ts";
import type { LauncherPanel } from "./chunks/launcher.ts";
import { type Chunks, loadChunk } from "./lazy-chunk.ts";
import type * as face from "./public-types.ts";
import { CHATS, type ScriptTag, setLauncherAttributes } from "./script-tag.ts";
import { baseStyles } from "./styles/base.styles.ts";
import { tokenStyles } from "./styles/tokens.styles.ts";

/**
 * A round button in the corner that opens the chat in a panel; what `/widget.js` adds to other sites' pages.
 *
 * @tagname agent-chat-launcher
 * @attr {string} server - Base URL of the server. Default: where the script was loaded from.
 * @attr {"bottom-end"|"bottom-start"|"top-end"|"top-start"} position - The corner; `end` is the right side where one reads from left to right.
 * @attr {"chat"|"spark"|"question"} icon - What the button shows. An image of your own goes into the slot `launcher-icon`.
 * @attr {"medium"|"small"|"large"} size - Size of the button: 56, 48 or 64 pixels.
 * @attr {string} label - A few words beside the icon; also what the button is called.
 * @attr {number|string} auto-open - Opens by itself: after so many milliseconds, `50%` (so much of the page was in view), `exit` (the mouse leaves the page by its top), or the first of several. Once a session, and never on a small screen.
 * @attr {string} preview - A few words in a bubble beside the closed button.
 * @attr {number|string} preview-after - When the bubble comes: as for `auto-open`. Default: 3000.
 * @attr {"auto"|"light"|"dark"} theme - As for `<agent-chat>`, like the following ones.
 * @attr {string} accent - Any CSS colour.
 * @attr {"normal"|"compact"|"spacious"} density - How much room text and messages take.
 * @attr {"round"|"soft"|"sharp"} corners - How round everything is.
 * @attr {string} lang - Language of the texts.
 * @attr {"ltr"|"rtl"|"auto"} dir - Direction.
 * @attr {"session"|"none"} persist - `session` keeps the conversation in this tab over a reload and over pages.
 * @attr {"auto"|"open"|"closed"|"hidden"} thinking - Thoughts: open while they stream, open at first, closed at first, or not shown.
 * @attr {"auto"|"open"|"closed"|"hidden"} tools - Tool calls, likewise; `auto` is closed.
 * @attr {string} actions - What can be done with messages: `all`, `none`, or words out of `copy`, `retry`, `edit`, `code` and `table`.
 * @attr {boolean} feedback - Thumbs on answers.
 * @attr {string} disclaimer - A line below the composer, in place of the agent's own.
 * @fires {Event} agent-chat-open - The panel was opened.
 * @fires {Event} agent-chat-close - The panel was closed.
 * @slot launcher-icon - Replaces the icon of the button.
 * @cssprop --agent-chat-inset-block - How far the button is from the window's upper or lower edge. Default: 20px.
 * @cssprop --agent-chat-inset-inline - How far it is from the side. Default: 20px.
 * @csspart launcher - The round button.
 * @csspart unread - The dot with the number of answers that came while the panel was closed.
 * @csspart preview - The bubble beside the closed button.
 * @csspart preview-close - The button that closes the bubble.
 * @csspart panel - The panel with the chat.
 * @csspart expand - The button that makes the panel large.
 * @csspart close - The panel's own button to close it.
 */
export class AgentChatLauncher extends ChatElement implements face.AgentChatLauncher {
  static override styles = [tokenStyles, baseStyles];

  static override properties: PropertyDeclarations = {
    apiKey: { attribute: false },
    position: { reflect: true },
    icon: {},
    size: { reflect: true },
    label: {},
    autoOpen: { attribute: "auto-open" },
    preview: {},
    previewAfter: { attribute: "preview-after" },
  };

  /** The site's key. A property only, so that it does not appear in the page a second time. */
  apiKey = "";
  position: "bottom-end" | "bottom-start" | "top-end" | "top-start" = "bottom-end";
  icon: "chat" | "spark" | "question" = "chat";
  size: "medium" | "small" | "large" = "medium";
  label = "";
  autoOpen: number | string | null = null;
  preview = "";
  previewAfter: number | string | null = null;

  #panel: LauncherPanel | undefined;
  #loading: Promise<LauncherPanel | undefined> | undefined;

  /** Whether the panel is open. */
  get opened(): boolean {
    return this.#panel?.isOpen ?? false;
  }

  /** The chat in the panel, once it has been opened for the first time. */
  get chat(): face.AgentChat | null {
    return this.renderRoot.querySelector("agent-chat");
  }

  /** Opens the panel and puts the cursor into its text field; resolves when both are done, or the launcher has left the page. */
  async open(): Promise<void> {
    await (await this.#load())?.open();
  }

  /** Closes the panel. The focus, if it was inside, goes back to where it was before. */
  close(): void {
    this.#panel?.close();
  }

  /** Opens the panel if it is closed, and the other way round. */
  async toggle(): Promise<void> {
    if (this.opened) this.close();
    else await this.open();
  }

  override connectedCallback(): void {
    super.connectedCallback();
    void this.#load();
  }

  protected override render(): unknown {
    return this.#panel?.render() ?? nothing;
  }

  /** Pages that show the chat themselves are spared the code of button and panel. */
  #load(): Promise<LauncherPanel | undefined> {
    this.#loading ??= this.#askForPanel();
    return this.#loading;
  }

  async #askForPanel(): Promise<LauncherPanel | undefined> {
    // Without its button a site has no chat at all, and a server that is being upgraded has it in a moment.
    while (this.isConnected) {
      const chunk = await new Promise<Chunks["launcher"] | undefined>((resolve) => {
        void loadChunk("launcher", () => resolve(undefined)).then((it) => it && resolve(it));
      });
      if (chunk) {
        this.#panel = new chunk.LauncherPanel(this);
        return this.#panel;
      }
    }
    this.#loading = undefined;
    return undefined;
  }
}

/** Adds the launcher, unless the page has placed the chat itself or wants none. */
export function addLauncher({ server, key, wantsLauncher, attributes }: ScriptTag): void {
  if (!wantsLauncher || document.querySelector(CHATS)) return;
  const launcher = new AgentChatLauncher();
  setLauncherAttributes(launcher, attributes, AgentChatLauncher.observedAttributes);
  if (!attributes.server) launcher.server = server;
  launcher.apiKey = key;
  document.body.append(launcher);
}
