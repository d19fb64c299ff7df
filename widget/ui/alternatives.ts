/** Buttons to switch between the alternatives of a message. Loaded with the first message that has any. */

import { html, type TemplateResult } from "lit";
import "../i18n/add-part-texts.ts";
import type { Message } from "../conversations/messages.ts";
import styles from "../styles/alternatives.css";
import { partSheets } from "../styles/part-sheets.ts";
import { ChatPart } from "./chat-part.ts";
import { iconButton } from "./controls.ts";
import { icons } from "./icons.ts";

export class AlternativesElement extends ChatPart {
  static override readonly sheets = partSheets(styles);
  static override properties = {
    message: { attribute: false },
    ids: { attribute: false },
    canSwitch: { attribute: false },
  };
  message!: Message;
  /** Ids of all alternatives, the message itself included. */
  ids: readonly string[] = [];
  canSwitch = false;

  protected override render(): TemplateResult {
    const { strings } = this.context;
    const number = this.ids.indexOf(this.message.id) + 1;
    const count = this.ids.length;
    const go = (part: string, to: number) => () => void this.#go(part, to);
    const unless = (isEnd: boolean) => ({ disabled: !this.canSwitch || isEnd });
    return html`
      <div part="alternatives" class="alternatives" role="group" aria-label=${this.#label(number)}>
        ${iconButton("previous", strings.previous, icons.previous, go("previous", number - 1), unless(number === 1))}
        <span aria-hidden="true">${number}/${count}</span>
        ${iconButton("next", strings.next, icons.next, go("next", number + 1), unless(number === count))}
      </div>
    `;
  }

  #label(number: number): string {
    const { answerOf, messageOf } = this.context.strings;
    return (this.message.role === "user" ? messageOf : answerOf)(number, this.ids.length);
  }

  /** The pressed button disappears with its message, so the same button of the other message gets the focus. */
  async #go(part: string, number: number): Promise<void> {
    const { message, context } = this;
    const id = this.ids[number - 1];
    if (id === undefined) return;
    const root = this.getRootNode() as ShadowRoot;
    const label = this.#label(number);
    await context.actions.switchTo(message, id);
    const others = [...root.querySelectorAll<AlternativesElement>("agent-chat-alternatives")];
    const shown = others.find((it) => it.message.id === id);
    if (!shown) return;
    const enabled = (selector: string) => shown.querySelector<HTMLElement>(`${selector}:enabled`);
    (enabled(`[part="${part}"]`) ?? enabled("button"))?.focus({ preventScroll: true });
    context.actions.announce(label);
  }
}
