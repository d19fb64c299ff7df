/** Texts of models and tools, as shown where users decide: without invisible characters. */

/** Control characters, those that change the direction, and invisible ones: they could make a text read as another. */
const HIDDEN = "(?![\\n\\t])\\p{Cc}|[\\p{Default_Ignorable_Code_Point}\\u2028-\\u202e\\ufff9-\\ufffc]";

/** Visible exceptions: joiners and styles in an emoji; one joiner between two letters of scripts that need it. */
const SEEN =
  "\\p{Extended_Pictographic}[\\p{Emoji_Modifier}\\ufe0e\\ufe0f]?(?:\\u200d\\p{Extended_Pictographic}[\\p{Emoji_Modifier}\\ufe0e\\ufe0f]?)*" +
  "|[\\d#*]\\ufe0f\\u20e3|(?<=[\\u0600-\\u0dff])[\\u200c\\u200d](?=[\\u0600-\\u0dff])";

const EITHER = new RegExp(`${SEEN}|(${HIDDEN})`, "gu");

const WRITTEN_OUT = /\\u(?:([0-9a-f]{4})|\{([0-9a-f]{1,6})\})/g;

/** More combining marks on one character would cover the lines above. No language needs so many. */
const MANY_MARKS = /(\p{M}{4})(?=\p{M})/gu;

/** Writes out invisible characters, such as `\u200b`. */
export function writtenOut(text: string): string {
  return text.replace(EITHER, (seen, hidden?: string) => (hidden === undefined ? seen : escaped(hidden)));
}

/** Reverses `writtenOut`, also after the user has edited the text. */
export function readBack(text: string): string {
  return text.replace(WRITTEN_OUT, (whole, four?: string, more = "") => {
    const code = Number.parseInt(four ?? more, 16);
    const character = code <= 0x10ffff ? String.fromCodePoint(code) : "";
    return writtenOut(character) === whole ? character : whole;
  });
}

/** The first UTF-16 code units of a text, without half a character at the end. */
export function beginning(text: string, length: number): string {
  return text.slice(0, length).replace(/[\uD800-\uDBFF]$/, "");
}

/** As `writtenOut`, and puts excess marks on dotted circles. */
export function plain(text: string): string {
  return writtenOut(text).replace(MANY_MARKS, "$1\u25cc");
}

function escaped(character: string): string {
  const code = (character.codePointAt(0) ?? 0).toString(16);
  return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, "0")}`;
}
