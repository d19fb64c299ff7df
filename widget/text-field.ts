/** The text field: its height, and what Enter means on its keyboard. */

/** There Shift+Enter is out of reach: the button sends, and Enter makes a line. */
export const touchKeyboard = matchMedia("(hover: none) and (pointer: coarse)");

/** The text field's height is less with one line, with or without the larger paddings of touch, and more with two. */
const ONE_LINE_PX = 50;

/** A longer text keeps the direction that it has. In characters. */
const LONG_TEXT = 20_000;

/** Makes the field as high as its text, as far as the style sheet lets it. */
export function growField(input: HTMLTextAreaElement | null): void {
  if (!input) return;
  const { length } = input.value;
  // With `auto` a browser looks through all of the text for its direction each time that it is laid out.
  input.dir = length > LONG_TEXT ? getComputedStyle(input).direction : "auto";
  // Not before the text is gone: the width would change to and fro where a line is just too long for one of the two.
  if (!length || input.scrollHeight > ONE_LINE_PX) {
    input.parentElement?.toggleAttribute("data-tall", length > 0);
  }
  // Browsers without `field-sizing: content` need the height set by hand.
  if (CSS.supports("field-sizing", "content")) return;
  input.style.height = "auto";
  if (length) input.style.height = `${input.scrollHeight}px`;
}
