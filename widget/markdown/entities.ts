/**
 * Code points, each with the names of the characters from there on: HTML 4 whole, but for the small Greek letters, and of
 * HTML 5 the punctuation and marks that people write. The other 1,900 names would cost more bytes than the lexer; such a
 * reference stays visible as it was written.
 */
const names =
  "9 Tab NewLine 33 excl quot num dollar percnt amp apos lpar rpar ast plus comma 46 period sol 58 colon semi lt " +
  "equals gt quest commat 91 lsqb bsol rsqb Hat lowbar grave 123 lcub verbar rcub 160 nbsp iexcl cent pound curren " +
  "yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro para middot cedil sup1 " +
  "ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc " +
  "Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml " +
  "Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute " +
  "icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml " +
  "338 OElig oelig 352 Scaron scaron 376 Yuml 402 fnof 710 circ 732 tilde 913 Alpha Beta Gamma Delta Epsilon Zeta " +
  "Eta Theta Iota Kappa Lambda Mu Nu Xi Omicron Pi Rho 931 Sigma Tau Upsilon Phi Chi Psi Omega 962 sigmaf 977 " +
  "thetasym upsih 982 piv 8194 ensp emsp 8201 thinsp 8204 zwnj zwj lrm rlm hyphen 8211 ndash mdash 8216 lsquo rsquo " +
  "sbquo 8220 ldquo rdquo bdquo 8224 dagger Dagger bull 8230 hellip 8240 permil 8242 prime Prime 8249 lsaquo rsaquo " +
  "8254 oline 8260 frasl 8364 euro 8465 image 8472 weierp 8476 real 8482 trade 8501 alefsym 8592 larr uarr rarr " +
  "darr harr 8629 crarr 8656 lArr uArr rArr dArr hArr 8704 forall 8706 part exist 8709 empty 8711 nabla isin notin " +
  "8715 ni 8719 prod 8721 sum minus 8727 lowast 8730 radic 8733 prop infin 8736 ang 8743 and or cap cup int 8756 " +
  "there4 8764 sim 8773 cong 8776 asymp 8800 ne equiv 8804 le ge 8834 sub sup nsub 8838 sube supe 8853 oplus 8855 " +
  "otimes 8869 perp 8901 sdot 8968 lceil rceil lfloor rfloor 9674 loz 9733 starf star 9824 spades 9827 clubs 9829 " +
  "hearts diams 10003 check 10007 cross 10216 lang rang";

function* namedCharacters(): Generator<readonly [string, string]> {
  let code = 0;
  for (const word of names.split(" ")) {
    if (/^\d/.test(word)) {
      code = Number(word);
      continue;
    }
    yield [word, String.fromCodePoint(code)];
    // Greek: a small letter is named like its capital, and stands 32 places behind it.
    if (code > 912 && code < 938) yield [word.toLowerCase(), String.fromCodePoint(code + 32)];
    code += 1;
  }
}

const named = new Map(namedCharacters());

const reference = /&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-zA-Z][a-zA-Z0-9]{1,31}));/g;

function fromCode(code: number): string {
  const isCharacter = code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  return isCharacter ? String.fromCodePoint(code) : "\ufffd";
}

/** Resolves character references without handing the text to an HTML parser; unknown names stay as written. */
export function decodeEntities(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(reference, (whole, decimal?: string, hex?: string, name?: string) => {
    if (decimal !== undefined) return fromCode(Number.parseInt(decimal, 10));
    if (hex !== undefined) return fromCode(Number.parseInt(hex, 16));
    return named.get(name ?? "") ?? whole;
  });
}
