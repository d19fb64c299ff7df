/** Texts of models and tools as they are shown where a person decides: with nothing in them that cannot be seen. */

/** Controls, what changes the direction, and what shows nothing: they could have a text read as another one. */
const HIDDEN = "(?![\\n\\t])\\p{Cc}|[\\p{Default_Ignorable_Code_Point}\\u2028-\\u202e\\ufff9-\\ufffc]";

/** What does show: the joiners and styles within an emoji, and one joiner between two letters of the scripts that need it. */
const SEEN =
  "\\p{Extended_Pictographic}[\\p{Emoji_Modifier}\\ufe0e\\ufe0f]?(?:\\u200d\\p{Extended_Pictographic}[\\p{Emoji_Modifier}\\ufe0e\\ufe0f]?)*" +
  "|[\\d#*]\\ufe0f\\u20e3|(?<=[\\u0600-\\u0dff])[\\u200c\\u200d](?=[\\u0600-\\u0dff])";

const EITHER = new RegExp(`${SEEN}|(${HIDDEN})`, "gu");

const WRITTEN_OUT = /\\u(?:([0-9a-f]{4})|\{([0-9a-f]{1,6})\})/g;

/** More marks on one character would be painted over the lines above. No language comes near. */
const MANY_MARKS = /(\p{M}{4})(?=\p{M})/gu;

/** With the characters that cannot be seen written out, such as `\u200b`. */
export function writtenOut(text: string): string {
  return text.replace(EITHER, (seen, hidden?: string) => (hidden === undefined ? seen : escaped(hidden)));
}

/** The text of which `writtenOut` has made this one, or what a person has made of it. */
export function readBack(text: string): string {
  return text.replace(WRITTEN_OUT, (whole, four?: string, more = "") => {
    const code = Number.parseInt(four ?? more, 16);
    const character = code <= 0x10ffff ? String.fromCodePoint(code) : "";
    return writtenOut(character) === whole ? character : whole;
  });
}

/** The first characters of a text. None of them is cut in two. */
export function beginning(text: string, length: number): string {
  return text.slice(0, length).replace(/[\uD800-\uDBFF]$/, "");
}

/** The same, and marks without an end continue on dotted circles. */
export function plain(text: string): string {
  return writtenOut(text).replace(MANY_MARKS, "$1\u25cc");
}

function escaped(character: string): string {
  const code = (character.codePointAt(0) ?? 0).toString(16);
  return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, "0")}`;
}
