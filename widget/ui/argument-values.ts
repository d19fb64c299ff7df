/** Parses arguments, and puts their names and values into words. */

import type { Strings } from "../i18n/strings.ts";

/** The value of a JSON text; `undefined` if it is invalid, repeats a name, or has a number that would be rounded. */
export function parse(json: string): unknown {
  try {
    const value: unknown = JSON.parse(json);
    const tokens = json.match(/"(?:[^"\\]|\\.)*"|:|-?\d[\d.eE+-]*/g) ?? [];
    const names = tokens.filter((token) => token === ":").length;
    const isWhole = namesIn(value) === names && tokens.every((token) => !/^[-\d]/.test(token) || isExact(token));
    return isWhole ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The number of names in all objects: fewer than in the text if an object repeats one. */
function namesIn(value: unknown): number {
  if (!isObject(value)) return 0;
  const inner = Object.values(value);
  return inner.reduce<number>((sum, it) => sum + namesIn(it), Array.isArray(value) ? 0 : inner.length);
}

/** Whether parsing a number does not round it. */
function isExact(number: string): boolean {
  return digitsOf(number) === digitsOf(String(Number(number)));
}

function digitsOf(number: string): string | undefined {
  const [, sign, whole = "", part = "", power = "0"] = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(number) ?? [];
  const digits = (whole + part).replace(/^0+/, "");
  const short = digits.replace(/(?<!0)0+$/, "");
  if (sign === undefined) return undefined;
  return short === "" ? "0" : `${sign}${short}e${Number(power) - part.length + digits.length - short.length}`;
}

export function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

export function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/** "order_id" and "orderId" as "Order id". */
export function labelOf(name: string): string {
  const words = name
    .replace(/(?<=[\p{Ll}\d])(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})/gu, " ")
    .replace(/[_\-.\s]+/g, " ")
    .trim();
  if (words === "") return name;
  const lower = words.replace(/\p{Lu}(?=\p{Ll})/gu, (letter) => letter.toLowerCase());
  return lower.charAt(0).toUpperCase() + lower.slice(1);
}

export function wordsOf(value: unknown, { yes, no }: Pick<Strings, "yes" | "no">): string {
  if (typeof value === "boolean") return value ? yes : no;
  const isEmpty = (value ?? "") === "" || (isObject(value) && Object.keys(value).length === 0);
  return isEmpty ? "–" : textOf(value);
}
