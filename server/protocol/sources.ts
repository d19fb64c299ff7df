/** What answers rest on. Types alone. */

/** A page or a file that an answer rests on. It has either `url` or `file`. */
export interface Source {
  /** Counts from 1 in a run: each `url` or `file` has one. */
  id: number;
  /** Plain text of at most 200 characters. */
  title: string;
  /** A page of http or https, at most 2,048 characters. */
  url?: string;
  /** Name of a file. */
  file?: string;
  /** The words that the answer rests on: plain text of at most 500 characters. */
  quote?: string;
}

/** Marks a place in the answer's text. It comes after the tokens that it marks. */
export interface SourceEvent {
  type: "source";
  data: Source & {
    /**
     * Counts UTF-16 units in the text that came since the start, or since the last `tool_call`, `tool_result` or `tool_approval`.
     * Absent where the source belongs to the whole answer.
     */
    at?: number;
  };
}

/** A source, once for all the places that rest on it. */
export interface CitedSource extends Source {
  /** Its places in the text of `done`, which is `response` of the JSON form, in UTF-16 units. */
  at: number[];
}

/** A source that a tool has given with its result, as the history keeps it. */
export interface ResultSource {
  title: string;
  url?: string;
  /** What it says. */
  text?: string;
}
