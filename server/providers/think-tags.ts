/** Where reasoning may stand inside the text of an answer. */
export interface ThinkTagRule {
  /** Names of the tags: "think" for `<think>…</think>`. */
  readonly names: readonly string[];
  /**
   * Whether tags count behind the first word too. Only for a tag that the server makes and no model writes:
   * an answer may be about such tags.
   */
  readonly anywhere: boolean;
}

/**
 * What Qwen, DeepSeek, MiniMax (`think`), Gemma (`thought`) and Nova (`thinking`) write when their server does
 * not take it out.
 */
export const MODEL_TAGS: ThinkTagRule = {
  names: ["think", "thought", "thinking"],
  anywhere: false,
};

/** The thinking and the text of a piece of an answer. Within one piece thinking comes before text. */
export interface ThinkTagPiece {
  thinking: string;
  text: string;
}

/** Takes reasoning in tags out of an answer that arrives in any pieces. */
export class ThinkTags {
  readonly #opening: readonly string[];
  readonly #anywhere: boolean;
  #mode: "start" | "thinking" | "closed" | "answer" = "start";
  /** The end of the text so far, as long as it may turn out to be a tag. */
  #held = "";
  /** The tag that ends the thinking. */
  #closing = "";
  #sawFlagged = false;

  constructor({ names, anywhere }: ThinkTagRule) {
    this.#opening = names.map((name) => `<${name}>`);
    this.#anywhere = anywhere;
  }

  /** Takes the next piece; `flagged`: the server says that all of it is thinking. */
  push(piece: string, flagged = false): ThinkTagPiece {
    const said: ThinkTagPiece = { thinking: "", text: "" };
    let rest = this.#held + piece;
    this.#held = "";
    this.#sawFlagged ||= flagged;
    while (rest !== "") rest = this.#take(rest, flagged, said);
    return said;
  }

  /** The end that was held back and is no tag. */
  end(): ThinkTagPiece {
    const held = this.#held;
    this.#held = "";
    return this.#mode === "thinking" ? { thinking: held, text: "" } : { thinking: "", text: held };
  }

  /** Sorts the beginning of `rest`, and returns what is left of it. */
  #take(rest: string, flagged: boolean, said: ThinkTagPiece): string {
    if (this.#mode === "thinking") return this.#takeThinking(rest, said);
    if (this.#mode === "closed") {
      const answer = rest.trimStart();
      if (answer !== "") this.#mode = "answer";
      return answer;
    }
    const isStart = this.#mode === "start";
    if (!isStart && !flagged && !this.#anywhere) {
      said.text += rest;
      return "";
    }
    const begin = isStart ? rest.trimStart() : rest;
    const opened = this.#opening.find((tag) => begin.startsWith(tag));
    if (opened !== undefined) {
      this.#mode = "thinking";
      this.#closing = closingOf(opened);
      return begin.slice(opened.length);
    }
    if (flagged) {
      said.thinking += rest;
      // The next answer text may begin with the closing tag.
      this.#mode = "start";
      return "";
    }
    return isStart ? this.#takeStart(rest, begin) : this.#takeUpToTag(rest, said);
  }

  #takeThinking(rest: string, said: ThinkTagPiece): string {
    const at = rest.indexOf(this.#closing);
    if (at === -1) {
      said.thinking += this.#holdBack(rest, [this.#closing]);
      return "";
    }
    said.thinking += rest.slice(0, at);
    this.#mode = "closed";
    return rest.slice(at + this.#closing.length);
  }

  #takeStart(rest: string, begin: string): string {
    // Where the server flags thoughts, the tag that ends them may still stand at the start of the answer.
    const closing = this.#sawFlagged ? this.#opening.map(closingOf) : [];
    const closed = closing.find((tag) => begin.startsWith(tag));
    if (closed !== undefined) {
      this.#mode = "closed";
      return begin.slice(closed.length);
    }
    if ([...this.#opening, ...closing].some((tag) => tag.startsWith(begin))) {
      this.#held = rest;
      return "";
    }
    this.#mode = "answer";
    return rest;
  }

  #takeUpToTag(rest: string, said: ThinkTagPiece): string {
    const places = this.#opening.map((tag) => rest.indexOf(tag)).filter((at) => at !== -1);
    if (places.length > 0) {
      const at = Math.min(...places);
      said.text += rest.slice(0, at);
      return rest.slice(at);
    }
    said.text += this.#holdBack(rest, this.#opening);
    return "";
  }

  /** Keeps back an end that may be the beginning of a tag, and returns what comes before it. */
  #holdBack(rest: string, tags: readonly string[]): string {
    const at = rest.lastIndexOf("<");
    if (at === -1 || !tags.some((tag) => tag.startsWith(rest.slice(at)))) return rest;
    this.#held = rest.slice(at);
    return rest.slice(0, at);
  }
}

function closingOf(tag: string): string {
  return `</${tag.slice(1)}`;
}
