import { isRecord } from "../../protocol/is-record.ts";

type Json = Record<string, unknown>;

/** A member whose value differs from one message of a stream to the next. */
export interface Slot {
  readonly key: string;
  /** The object of a message that has it; `undefined` where the message has none. */
  readonly holder: (message: Json) => unknown;
}

/** What a model says, in the messages of one API, and what else differs in those that say something. */
export interface MessageSlots {
  readonly texts: readonly Slot[];
  readonly others: readonly Slot[];
}

/** Longest message that is looked at: those that say a token are short. */
const MOST_CHARS = 2_000;

/** Messages of a stream that are parsed as they are: to make a pattern takes as long as to parse ten. */
export const FIRST_MESSAGES = 10;

/** How many patterns are made in a row of which none fits: some servers write no two messages alike. */
const MOST_TRIES = 4;

/** From this length on V8 makes a slice a view of the whole text, which it keeps from being freed. */
const VIEW_CHARS = 13;

/**
 * Parses the messages of one stream as `JSON.parse` does. Those that bring a token mostly differ from the one before in one
 * or two values alone: then only these are read, and put into the object that the message before was. So what `parse`
 * returns is to be read before it is called again.
 */
export class RepeatedJson {
  readonly #slots: MessageSlots;
  #pattern: Pattern | undefined;
  #tries = MOST_TRIES;
  #parsed = 0;

  constructor(slots: MessageSlots) {
    this.#slots = slots;
  }

  /** @throws SyntaxError for what is no JSON */
  parse(text: string): unknown {
    if (this.#pattern?.fill(text)) {
      this.#tries = MOST_TRIES;
      return this.#pattern.message;
    }
    const json: unknown = JSON.parse(text);
    if (this.#parsed++ < FIRST_MESSAGES) return json;
    if (this.#tries === 0) {
      this.#pattern = undefined;
    } else if (isRecord(json) && text.length <= MOST_CHARS) {
      const pattern = patternOf(text, json, this.#slots);
      if (pattern !== undefined) {
        this.#pattern = pattern;
        this.#tries--;
      }
    }
    return json;
  }
}

/** A value in the text of a message that may be another in the next one. */
interface Hole {
  readonly slot: Slot;
  readonly holder: Json;
  readonly isNumber: boolean;
  readonly from: number;
  readonly to: number;
}

/** The text of a message, and where others of its kind differ. */
class Pattern {
  readonly message: Json;
  readonly #holes: readonly Hole[];
  /** What stands before each hole, and behind the last one. */
  readonly #between: readonly string[];
  /** What was found in each. */
  readonly #values: string[];

  constructor(message: Json, text: string, holes: readonly Hole[]) {
    this.message = message;
    this.#holes = holes;
    // Copies: to compare with a view of another text takes V8 several times as long.
    this.#between = between(text, holes).map((part) => JSON.parse(JSON.stringify(part)));
    this.#values = holes.map(() => "");
  }

  /** Puts the values of a text that differs in nothing else into the message. `false`, and nothing is done, for any other. */
  fill(text: string): boolean {
    let at = 0;
    for (const [index, { isNumber }] of this.#holes.entries()) {
      const from = this.#skip(text, at, index);
      at = from === -1 ? -1 : endOf(text, from, isNumber);
      if (at === -1) return false;
      this.#values[index] = text.slice(from, at);
    }
    if (this.#skip(text, at, this.#holes.length) !== text.length) return false;
    for (const [index, { slot, holder, isNumber }] of this.#holes.entries()) {
      holder[slot.key] = readValue(this.#values[index] ?? "", isNumber);
    }
    return true;
  }

  /** Where the part of this index ends in the text; -1 where another stands there. `startsWith` takes longer. */
  #skip(text: string, at: number, index: number): number {
    const part = this.#between[index] ?? "";
    const end = at + part.length;
    return text.slice(at, end) === part ? end : -1;
  }
}

/** What stands in a hole, as a value that keeps nothing else in memory. */
function readValue(written: string, isNumber: boolean): string | number {
  if (isNumber) return Number(written);
  return written.length < VIEW_CHARS ? written : JSON.parse(`"${written}"`);
}

function patternOf(text: string, message: Json, slots: MessageSlots): Pattern | undefined {
  const texts = slots.texts.flatMap((slot) => holeOf(text, message, slot));
  if (texts.length === 0) return undefined;
  const holes = [...texts, ...slots.others.flatMap((slot) => holeOf(text, message, slot))];
  holes.sort((one, other) => one.from - other.from);
  return isProven(text, holes) ? new Pattern(message, text, holes) : undefined;
}

/** Where the text has the value of this slot, as it seems. */
function holeOf(text: string, message: Json, slot: Slot): Hole[] {
  const holder = slot.holder(message);
  const name = `"${slot.key}":`;
  const at = text.indexOf(name);
  if (!isRecord(holder) || at === -1 || text.includes(name, at + 1)) return [];
  let from = at + name.length;
  while (text.charCodeAt(from) === 32) from++;
  const isNumber = text.charCodeAt(from) !== 34;
  if (!isNumber) from++;
  const to = endOf(text, from, isNumber);
  // The value may be that of another member, or the beginning of a fraction.
  if (to === -1 || holder[slot.key] !== readValue(text.slice(from, to), isNumber)) return [];
  if (isNumber && /[.eE]/.test(text.charAt(to))) return [];
  return [{ slot, holder, isNumber, from, to }];
}

/**
 * Whether other values in these places are those of the slots, as these are: a name may be spelled in another way, or be the
 * end of another.
 */
function isProven(text: string, holes: readonly Hole[]): boolean {
  const others = holes.map(({ isNumber, from, to }) =>
    isNumber ? `1${text.slice(from, to)}` : `${text.slice(from, to)}.`,
  );
  const parts = between(text, holes);
  try {
    const message: unknown = JSON.parse(parts.map((part, index) => part + (others[index] ?? "")).join(""));
    return holes.every(({ slot, isNumber }, index) => {
      const holder = isRecord(message) ? slot.holder(message) : undefined;
      return isRecord(holder) && holder[slot.key] === readValue(others[index] ?? "", isNumber);
    });
  } catch {
    return false;
  }
}

function between(text: string, holes: readonly Hole[]): string[] {
  const ends = [0, ...holes.map(({ to }) => to)];
  return ends.map((end, at) => text.slice(end, holes[at]?.from));
}

/** Where a value ends; -1 where there is none. */
function endOf(text: string, from: number, isNumber: boolean): number {
  return isNumber ? endOfNumber(text, from) : endOfText(text, from);
}

/** A text as JSON has it ends before a quotation mark, and before what it has in another way (RFC 8259, 7). */
function endOfText(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char < 32 || char === 34 || char === 92) return at;
  }
  return -1;
}

/** Whole numbers that are exact, and written as JSON has them: without a zero in front. */
function endOfNumber(text: string, from: number): number {
  let at = from;
  while (isDigit(text.charCodeAt(at))) at++;
  const digits = at - from;
  const isOne = digits === 1 || (digits > 1 && digits < 15 && text.charCodeAt(from) !== 48);
  return isOne ? at : -1;
}

function isDigit(char: number): boolean {
  return char >= 48 && char <= 57;
}
