/** The sources of answers. Types only. */

/** A page or a file that an answer is based on. It has either `url` or `file`. */
export interface Source {
  /** Number from 1 within a run, one for each `url` or `file`. */
  id: number;
  /** Plain text of at most 200 characters. */
  title: string;
  /** An http or https address of at most 2,048 characters. */
  url?: string;
  /** Name of a file. */
  file?: string;
  /** The passage that the answer is based on: plain text of at most 500 characters. */
  quote?: string;
}

/** Marks a place in the answer's text. It comes after the tokens that it marks. */
export interface SourceEvent {
  type: "source";
  data: Source & {
    /**
     * Offset, in UTF-16 units, in the text since the start or the last `tool_call`, `tool_result` or `tool_approval`.
     * Absent where the source belongs to the whole answer.
     */
    at?: number;
  };
}

/** A source, listed once with all places that cite it. */
export interface CitedSource extends Source {
  /** Its places in the text of `done`, which is `response` of the JSON form, in UTF-16 units. */
  at: number[];
}

/** A source that a tool has given with its result, as the history keeps it. */
export interface ResultSource {
  title: string;
  url?: string;
  /** Its content. */
  text?: string;
}
