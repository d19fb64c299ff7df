/** Messages that were written while an answer was running, above the text field. Loaded with the first one. */

import { html, nothing, type PropertyValues, type TemplateResult } from "lit";
import "../i18n/add-part-texts.ts";
import type { ChatSession, SessionStatus } from "../conversations/chat-session.ts";
import type { QueuedMessage } from "../conversations/conversation.ts";
import { asks, isSendable, lacksFiles } from "../conversations/send-queued.ts";
import { partSheets } from "../styles/part-sheets.ts";
import styles from "../styles/pending.css";
import { ChatPart } from "./chat-part.ts";
import { HEARD_AFTER_MS } from "./controllers/announcer.ts";
import { iconButton, smallButton } from "./controls.ts";
import { icons } from "./icons.ts";
import { pressOnce } from "./keys.ts";

export class PendingElement extends ChatPart {
  static override readonly sheets = partSheets(styles);
  static override properties = {
    session: { attribute: false },
    list: { attribute: false },
    status: { attribute: false },
    isUnfolded: { state: true },
  };
  session!: ChatSession;
  list: readonly QueuedMessage[] = [];
  status: SessionStatus = "idle";
  /** Whether all are shown although there is room for one line only, as above a phone's keyboard. */
  private isUnfolded = false;
  #announced = "";

  protected override willUpdate(changed: PropertyValues<this>): void {
    const last = this.list.at(-1);
    if (!last) return;
    const { strings, agent } = this.context;
    const isAsking = this.#asks(last);
    const text = !isAsking ? strings.pending(agent) : this.status === "idle" ? strings.sendAnyway : "";
    const isMore = changed.has("list") && this.list.length > (changed.get("list")?.length ?? 0);
    if (isMore || text !== this.#announced) this.#announce(text, isAsking);
    // There may be no room for all of them.
    if (isMore) void this.updateComplete.then(() => this.#scrollToEnd());
    this.#announced = text;
  }

  #scrollToEnd(): void {
    const list = this.querySelector("ul");
    if (list) list.scrollTop = list.scrollHeight;
  }

  /** A question is announced after the answer, and not at all if the messages are sent meanwhile. */
  #announce(text: string, isQuestion: boolean): void {
    const { actions } = this.context;
    if (!isQuestion) actions.announce(text);
    else if (text) {
      setTimeout(() => this.isConnected && text === this.#announced && actions.announce(text), HEARD_AFTER_MS);
    }
  }

  protected override render(): TemplateResult {
    const { strings } = this.context;
    const isFolded = this.list.length > 1 && !this.isUnfolded;
    return html`
      <ul
        part="pending"
        class=${isFolded ? "pending is-folded" : "pending"}
        aria-label=${this.#announced || strings.sendNow}
        @keydown=${pressOnce}
      >
        ${this.list.length > 1 ? this.#renderFold() : nothing}
        ${this.#groups().map(
          (group) => html`${group.map((message) => this.#renderMessage(message))} ${this.#renderLine(group)}`,
        )}
      </ul>
    `;
  }

  /** Visible only in a low window. */
  #renderFold(): TemplateResult {
    const toggle = () => {
      this.isUnfolded = !this.isUnfolded;
    };
    return html`<li class="pending-fold">
      <button
        type="button"
        part="show-pending"
        class="small-button"
        aria-expanded=${this.isUnfolded}
        @click=${toggle}
      >
        ${this.context.strings.pendingCount(this.list.length)}${icons.next}
      </button>
    </li>`;
  }

  #renderMessage(message: QueuedMessage): TemplateResult {
    const { strings, actions } = this.context;
    const { id, text, files } = message;
    const names = new Intl.ListFormat(strings.lang).format(files.map(({ name }) => name));
    const isLost = lacksFiles(this.session, message);
    // Ignores the second click of a double click, which was meant for the message that was here.
    const takeOut = ({ detail }: MouseEvent, toChange: boolean) => detail < 2 && actions.takeOut(id, toChange);
    return html`
      <li class="pending-message">
        <div class="pending-said">
          ${text ? html`<div class="pending-text" dir="auto" title=${text}>${text}</div>` : nothing}
          ${isLost ? html`<div class="pending-files">${strings.fileLost(names)}</div>` : names ? html`<div class="pending-files pending-names" title=${names}>${names}</div>` : nothing}
        </div>
        ${iconButton("edit", strings.change, icons.edit, (event) => takeOut(event, true))}
        ${iconButton("withdraw", strings.withdraw, icons.close, (event) => takeOut(event, false))}
      </li>
    `;
  }

  /** Consecutive messages that wait for the same thing. */
  #groups(): readonly (readonly QueuedMessage[])[] {
    const groups: QueuedMessage[][] = [];
    for (const message of this.list) {
      const [before] = groups.at(-1) ?? [];
      if (before && this.#asks(before) === this.#asks(message)) groups.at(-1)?.push(message);
      else groups.push([message]);
    }
    return groups;
  }

  #asks(message: QueuedMessage): boolean {
    return asks(this.session, message);
  }

  /** The line below a group. Messages that ask before they are sent are only sent by the button of their own line. */
  #renderLine(group: readonly QueuedMessage[]): TemplateResult {
    const { strings, agent, actions } = this.context;
    const isAsking = group.some((it) => this.#asks(it));
    // The other messages are sent as well: they wait for the end of the answer, which this stops.
    const asked = this.list.filter((it) => group.includes(it) || !this.#asks(it));
    const send = (label: string) =>
      smallButton("send-pending", label, () => void actions.sendQueued(asked.map(({ id }) => id)));
    const texts = [
      ...(isAsking ? [] : [strings.pending(agent)]),
      ...(this.session.writingDeclines ? [strings.writingDeclines] : []),
    ];
    // Not while a message waits for a key, or an answer is being stopped.
    const isTime = this.status === "running" || this.status === "idle";
    const maySend = isTime && group.some((it) => isSendable(this.session, it));
    return html`
      <li class="pending-line">
        ${texts.length > 0 ? html`<div>${texts.map((text) => html`<div>${text}</div>`)}</div>` : nothing}
        ${maySend ? send(isAsking && this.status === "idle" ? strings.sendAnyway : strings.sendNow) : nothing}
      </li>
    `;
  }
}
