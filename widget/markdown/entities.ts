import { html, render } from "lit";

const reference = /&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-zA-Z][a-zA-Z0-9]{1,31}));/g;

/** Names that were asked for, with their characters, or with the reference as it was written where there are none. */
const known = new Map<string, string>();

/**
 * The browser knows all 2,125 names; a table of our own would be as large as the rest of this folder. Only letters and
 * digits get here, so what is parsed can be nothing but this one reference, and Lit's policy may parse it.
 */
function named(name: string): string {
  const whole = `&${name};`;
  const strings = [whole];
  const box = document.createElement("span");
  render(html(Object.assign(strings, { raw: strings })), box);
  const text = box.textContent;
  // HTML also reads `&notit;` as `&not` and "it;", which Markdown does not.
  return text.length > 1 && text.endsWith(";") ? whole : text;
}

function fromName(name: string): string {
  const character = known.get(name) ?? named(name);
  known.set(name, character);
  return character;
}

function fromCode(code: number): string {
  const isCharacter = code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  return isCharacter ? String.fromCodePoint(code) : "\ufffd";
}

/** Resolves character references; unknown names stay as written. */
export function decodeEntities(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(reference, (_whole, decimal?: string, hex?: string, name = "") => {
    if (decimal !== undefined) return fromCode(Number.parseInt(decimal, 10));
    if (hex !== undefined) return fromCode(Number.parseInt(hex, 16));
    return fromName(name);
  });
}
