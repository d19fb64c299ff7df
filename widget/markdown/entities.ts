import { html, render } from "lit";

const REFERENCE = /&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-zA-Z][a-zA-Z0-9]{1,31}));/g;

/** The characters of the names resolved so far; for an unknown name, the reference as written. */
const known = new Map<string, string>();

/**
 * The browser knows all 2,125 names; a table of our own would be as large as the rest of this folder. Only letters and
 * digits get here, so the parsed HTML can only be this one reference. Lit has the policy that Trusted Types require.
 */
function named(name: string): string {
  const whole = `&${name};`;
  const box = document.createElement("span");
  render(html(Object.assign([whole], { raw: [whole] })), box);
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
  return text.replace(REFERENCE, (_whole, decimal?: string, hex?: string, name = "") => {
    if (decimal !== undefined) return fromCode(Number.parseInt(decimal, 10));
    if (hex !== undefined) return fromCode(Number.parseInt(hex, 16));
    return fromName(name);
  });
}
