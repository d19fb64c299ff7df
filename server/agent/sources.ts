/**
 * The sources of a run's answer, and the places in its text that cite them. Loaded with the first source, and with the
 * first text that may have a citation mark of OpenAI's, which models write to cite and people are not meant to see.
 */

import type { MarkEvent } from "../observe/run-observer.ts";
import type { CitedSource, Source, SourceEvent } from "../protocol/sources.ts";
import { toHistoryCall } from "../providers/history.ts";
import type { FoundSource, ModelEvent, ProviderFacts, ToolAnswer } from "../providers/provider.ts";
import type { Exchange } from "./exchange.ts";
import { cutLine, plainText } from "./plain-text.ts";
import type { IsHidden } from "./sealed.ts";
import type { End } from "./states.ts";

const MAX = { url: 2048, title: 200, quote: 500 };

/** Maximum number of tools' sources that clients get in one run, and of places of all sources. */
const MAX_OF_TOOLS = 20;
const MAX_PLACES = 1000;

/** A place of the answer that cites a source. */
interface Place {
  readonly source: Source;
  /** Offset in the text of all turns; `undefined` if the source belongs to the whole answer. */
  readonly at: number | undefined;
  /** Length of that text when the source came. */
  readonly said: number;
  /** Number of entries of the exchange at that time. */
  readonly entries: number;
}

export class Sources {
  readonly #isHidden: IsHidden;
  readonly #citesResults: boolean;
  readonly #marks = new SourceMarks();
  /** By `url` or `file`. */
  readonly #known = new Map<string, Source>();
  /** All places so far. */
  #places: Place[] = [];
  #ofTools = 0;

  /** `isHidden`: clients do not get the sources of such a call. */
  constructor(isHidden: IsHidden = () => false, { citesResults = false }: Pick<ProviderFacts, "citesResults"> = {}) {
    this.#isHidden = isHidden;
    this.#citesResults = citesResults;
  }

  /** The model's events, with the marks removed from the text. */
  read(batch: readonly ModelEvent[]): ModelEvent[] {
    return this.#marks.read(batch);
  }

  /** Adds a source of the answer. Returns its event, if it is new. */
  found({ back: given, call, ...found }: FoundSource, exchange: Exchange): MarkEvent[] {
    const source = call && this.#isHidden(call) ? undefined : this.#sourceOf(found);
    if (source === undefined || this.#places.length >= MAX_PLACES) return [];
    const back = Number.isSafeInteger(given) ? Math.max(0, Number(given)) : undefined;
    const said = lengthOf(exchange);
    const at = back === undefined ? undefined : said - back;
    const place: Place = { source, at, said, entries: exchange.entries.length };
    // Several APIs report a source twice, in the stream and at the end, or once for each passage of a page.
    if (this.#places.some((one) => isSame(one, place))) return [];
    this.#places.push(place);
    const placed = (units: number): SourceEvent => {
      return { type: "source", data: { ...source, ...(back === undefined ? {} : { at: Math.max(0, units - back) }) } };
    };
    return [{ type: "mark", placed }];
  }

  /** Adds the sources of a tool's result to the whole answer, unless the API says which places cite them. */
  ofTool({ id, name, sources = [] }: ToolAnswer, exchange: Exchange): MarkEvent[] {
    const call = toHistoryCall({ id, name, arguments: "" });
    const marks: MarkEvent[] = [];
    for (const { title, url, text } of this.#citesResults ? [] : sources) {
      if (this.#ofTools >= MAX_OF_TOOLS) break;
      const found = this.found({ title, url, file: title, quote: text, call }, exchange);
      this.#ofTools += found.length;
      marks.push(...found);
    }
    return marks;
  }

  /** Removes the places in text that was removed from the exchange, because it was thinking. */
  withdraw(exchange: Exchange): void {
    this.#places = this.#places.filter(({ at = 0 }) => at <= lengthOf(exchange));
  }

  /** Each source with its places in `text`, that of `done`; no sources if the answer was refused or withheld. */
  listed(text: string, end: End, exchange: Exchange): { sources?: CitedSource[] } {
    if (end.type === "refused" || ("isWithheld" in end && end.isWithheld)) return {};
    // `text` is the end of all that was said, or a sentence of Parley.
    const start = exchange.said.endsWith(text) ? lengthOf(exchange) - text.length : Number.POSITIVE_INFINITY;
    const listed = new Map<number, CitedSource>();
    for (const { source, at = -1, said } of this.#places) {
      const one = listed.get(source.id) ?? { ...source, at: [] };
      listed.set(source.id, one);
      // A place at the start of `text` may belong to the end of the text before it.
      const isIn = at >= start && (said > start || start === 0);
      if (isIn && !one.at.includes(at - start)) one.at.push(at - start);
    }
    return listed.size === 0 ? {} : { sources: [...listed.values()] };
  }

  /** The source as clients get it; `undefined` if it names neither a page nor a file. */
  #sourceOf({ title = "", url = "", file = "", quote = "" }: FoundSource): Source | undefined {
    const page = pageOf(url);
    const place = page === undefined ? { file: short(file, MAX.title) } : { url: page.href };
    const key = place.url ?? place.file;
    if (key === "" || key === undefined) return undefined;
    const { id, title: known } = this.#known.get(key) ?? { id: this.#known.size + 1, title: undefined };
    const name = known ?? (short(title, MAX.title) || cutLine(page?.host ?? key, MAX.title));
    const words = short(quote, MAX.quote);
    const source = { id, title: name, ...place, ...(words === "" ? {} : { quote: words }) };
    if (known === undefined) this.#known.set(key, source);
    return source;
  }
}

function isSame(one: Place, other: Place): boolean {
  if (one.source.id !== other.source.id || one.at !== other.at) return false;
  return one.at === undefined || one.entries === other.entries;
}

/** Length of all that was said, in UTF-16 code units. */
function lengthOf({ entries }: Exchange): number {
  return entries.reduce((sum, entry) => sum + (entry.type === "turn" ? entry.text.length : 0), 0);
}

/** The address of a page, if it is one that clients may open. */
function pageOf(url: string): URL | undefined {
  const page = URL.parse(url);
  return page !== null && /^https?:$/.test(page.protocol) && page.href.length <= MAX.url ? page : undefined;
}

const short = (text: string, max: number): string => cutLine(plainText(text), max);

/** Citation marks: `【4:0†terms.pdf】`, or words such as `cite` and `turn0search1` between private-use characters. */
const MARK = /【\d{1,4}(?::\d{1,4})?†[^【】\n]{0,200}】|\uE200[^\uE200\uE201\n]{0,400}\uE201/;
const MAX_MARK = 402;
/** An incomplete mark at the end of a text. */
const BEGUN = /(?:【(?:\d{1,4}(?::\d{0,4})?)?|【\d{1,4}(?::\d{1,4})?†[^【】\n]{0,200}|\uE200[^\uE200\uE201\n]{0,400})$/;

/** Events that may come between the pieces of a text without ending it. */
const BETWEEN: ReadonlySet<ModelEvent["type"]> = new Set(["source", "usage", "report", "model", "progress"]);

/** Removes the marks from a text that arrives in pieces, and moves the places of sources accordingly. */
class SourceMarks {
  /** The end of the text so far, held back as long as it may be the beginning of a mark. */
  #held = "";
  /** Number of characters that have arrived. */
  #arrived = 0;
  /** Where each removed mark began in what has arrived, and its length. */
  readonly #removed: { start: number; length: number }[] = [];

  read(batch: readonly ModelEvent[]): ModelEvent[] {
    return batch.flatMap((event): ModelEvent[] => {
      if (event.type === "text") return this.#text(event.delta, false);
      if (event.type === "source") return [{ type: "source", source: this.#moved(event.source) }];
      return BETWEEN.has(event.type) ? [event] : [...this.#text("", true), event];
    });
  }

  #text(piece: string, isEnd: boolean): ModelEvent[] {
    this.#arrived += piece.length;
    let rest = this.#held + piece;
    let delta = "";
    for (;;) {
      const mark = MARK.exec(rest);
      // No mark is longer than `MAX_MARK`, so an incomplete one begins in the last characters.
      const tail = Math.max(0, rest.length - MAX_MARK);
      const begun = isEnd ? rest.length : tail + (BEGUN.exec(rest.slice(tail))?.index ?? rest.length - tail);
      const end = Math.min(mark?.index ?? rest.length, begun);
      delta += rest.slice(0, end);
      rest = rest.slice(end);
      if (mark === null || mark.index !== end) break;
      const { length } = mark[0];
      this.#removed.push({ start: this.#arrived - rest.length, length });
      rest = rest.slice(length);
    }
    this.#held = rest;
    return delta === "" ? [] : [{ type: "text", delta }];
  }

  #moved(source: FoundSource): FoundSource {
    if (source.back === undefined) return source;
    const end = this.#without(this.#arrived - this.#held.length);
    return { ...source, back: Math.max(0, end - this.#without(this.#arrived - source.back)) };
  }

  /** Converts an offset in what has arrived to one in the text without marks. */
  #without(place: number): number {
    return this.#removed.reduce(
      (left, { start, length }) => left - Math.min(length, Math.max(0, place - start)),
      place,
    );
  }
}
