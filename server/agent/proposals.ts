/** What an agent's code proposes beside its answer: the next messages, and a title of the conversation. */

import type { DoneEvent } from "../protocol/events.ts";

import type { RunContext } from "./run-context.ts";
import { plainText } from "./tool-words.ts";

const MAX_SUGGESTIONS = 3;
const MAX_CHARS = 200;

/** The proposals of one run. Of several calls, the last one counts. */
export class Proposals implements Pick<RunContext, "suggest" | "title"> {
  #suggestions: readonly string[] = [];
  #title: string | undefined;

  readonly suggest = (texts: readonly string[]): void => {
    if (!Array.isArray(texts) || texts.length > MAX_SUGGESTIONS) {
      throw new TypeError(`suggest takes a list of at most ${MAX_SUGGESTIONS} texts.`);
    }
    this.#suggestions = texts.map((text) => lineOf("suggest", text));
  };

  readonly title = (text: string): void => {
    this.#title = lineOf("title", text);
  };

  /** The fields of `done`. */
  fields(): Pick<DoneEvent, "suggestions" | "title"> {
    return {
      ...(this.#suggestions.length === 0 ? {} : { suggestions: [...this.#suggestions] }),
      ...(this.#title === undefined ? {} : { title: this.#title }),
    };
  }
}

function lineOf(name: string, text: unknown): string {
  const line = typeof text === "string" ? plainText(text) : "";
  if (line !== "" && line.length <= MAX_CHARS) return line;
  throw new TypeError(`${name} takes texts of 1 to ${MAX_CHARS} characters.`);
}
