/** An Enter that comes before it is known what the tab has kept: its message is sent once it is. */

export class EarlyEnter {
  #pressed: string | undefined;
  /** What an earlier page had in the field, which is empty once the message is sent. */
  afterwards = "";

  /** To be called with the text that is to be sent; the first time counts. */
  press(text: string): void {
    this.#pressed ??= text;
  }

  /** The text to send, once, and what the field holds then; nothing where the text was changed since. */
  take(text: string): readonly [pressed: string, rest: string] | undefined {
    const pressed = this.#pressed;
    this.#pressed = undefined;
    if (pressed === undefined || !text.startsWith(pressed)) return undefined;
    return [pressed, text.slice(pressed.length) || this.afterwards];
  }
}
