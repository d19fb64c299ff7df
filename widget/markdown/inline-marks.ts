/** Rules for marks and URLs beside Chinese, Japanese and Korean text, and for tildes, which models use unlike GFM. */

import { Lexer, type Rules } from "marked";

/** Wide characters of these scripts and their punctuation, without emoji: the CJK characters of UAX #11 and Hangul. */
const CJK =
  "[\\u1100-\\u11ff\\u2e80-\\u2fff\\u3001-\\u303e\\u3041-\\ua4cf\\ua960-\\ua97f\\uac00-\\ud7ff\\uf900-\\ufaff" +
  "\\ufe10-\\ufe19\\ufe30-\\ufe6f\\uff01-\\uffee\\u{16fe0}-\\u{1b2ff}\\u{20000}-\\u{3fffd}\\u{e0100}-\\u{e01ef}]";

const CJK_AT_END = new RegExp(`${CJK}$`, "u");

/** Punctuation that ends a URL without a space before it. The dot within a name (U+30FB) does not. */
const AFTER_ADDRESS =
  "\\u2013-\\u201f\\u2026\\u3001-\\u3003\\u3008-\\u3011\\u3014-\\u301f\\ufe10-\\ufe6f\\uff01-\\uff0f\\uff1a-\\uff20\\uff3b-\\uff40\\uff5b-\\uff64";

/** Whether a text ends with a CJK character. */
export function endsWithCjk(text: string): boolean {
  return CJK_AT_END.test(text);
}

/**
 * Matches the end marks of emphasis (`*`) or strikethrough (`~`). Beside CJK characters a mark may touch punctuation,
 * since words are not separated by spaces there. The groups are those that marked reads: 1 and 2 close, 3 and 4 open, 5
 * and 6 do either.
 */
function endsOf(mark: string, run: string, leading: string): RegExp {
  const punctuation = punctuationBut(`${mark}~`);
  const letter = `(?:(?!${CJK})[^\\s\\p{P}\\p{S}]${mark === "~" ? "" : "|~"})`;
  return new RegExp(
    [
      `${leading}[^${mark}]+(?=[^${mark}])`,
      `${punctuation}(${run})(?=\\s|$)`,
      `(?:${letter}(?=${run}(?:\\s|${punctuation}|$))|${CJK}(?=${run}(?:\\s|$)))(${run})`,
      `(?:${punctuation}(?=${run}${letter})|\\s(?=${run}(?:${letter}|${CJK})))(${run})`,
      `\\s(${run})(?=${punctuation})`,
      `(?:${punctuation}|${CJK})(${run})(?=${punctuation}|${CJK})`,
      `(?:${letter}|${CJK})(${run})(?=${letter}|${CJK})`,
    ].join("|"),
    "gu",
  );
}

/** Punctuation, except for these characters and those of CJK scripts. */
function punctuationBut(characters: string): string {
  return `(?![${characters}]|${CJK})[\\p{P}\\p{S}]`;
}

const { gfm } = Lexer.rules.inline;

/** marked's rules for inline text, with the following changes. */
export const INLINE_RULES: Rules["inline"] = {
  ...gfm,
  // CJK characters change nothing for `_`, which neither opens nor closes within a word.
  emStrongLDelim: new RegExp(
    `^\\*+(?:(${punctuationBut("*~")})|([^\\s*]))?|^_+(?:((?![_~])[\\p{P}\\p{S}])|([^\\s_]))?`,
    "u",
  ),
  emStrongRDelimAst: endsOf("*", "\\*+", "^[^_*]*?__[^_*]*?\\*[^_*]*?(?=__)|"),
  // Two tildes only: a single one means "about", or stands in a range.
  delLDelim: new RegExp(`^~~(?:(${punctuationBut("~")})|[^\\s~])`, "u"),
  delRDelim: endsOf("~", "~~?", "^"),
  url: new RegExp(gfm.url.source.replace("[^\\s<]*", () => `[^\\s<${AFTER_ADDRESS}]*`)),
};
