/** What was sent with Enter. Before it is known what the tab has kept it waits, and one may write on meanwhile. */

export class EarlyEnter {
  #pressed: string | undefined;
  #afterwards = "";

  /** To be called with the text that is to be sent; the first time counts. */
  press(text: string): void {
    this.#pressed ??= text;
  }

  /** An earlier page had this in the field, which will be empty once the message is sent. */
  keep(draft: string): void {
    if (this.#pressed !== undefined) this.#afterwards = draft;
  }

  /** The text to send, once, and what the field holds then; nothing where the text was changed since. */
  take(text: string): readonly [pressed: string, rest: string] | undefined {
    const [pressed, afterwards] = [this.#pressed, this.#afterwards];
    this.#pressed = undefined;
    this.#afterwards = "";
    if (pressed === undefined || !text.startsWith(pressed)) return undefined;
    return [pressed, text.slice(pressed.length) || afterwards];
  }
}
