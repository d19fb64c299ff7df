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
  readonly #rule: ThinkTagRule;
  #mode: "start" | "thinking" | "closed" | "answer" = "start";
  /** The end of the text so far, as long as it may turn out to be a tag. */
  #held = "";
  /** The tag that ends the thinking. */
  #closing = "";
  #sawFlagged = false;

  constructor(rule: ThinkTagRule) {
    this.#rule = rule;
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
    switch (this.#mode) {
      case "thinking":
        return this.#takeThinking(rest, said);
      case "closed": {
        const answer = rest.trimStart();
        if (answer !== "") this.#mode = "answer";
        return answer;
      }
      case "start":
        return this.#takeStart(rest, flagged, said);
      case "answer":
        return this.#takeAnswer(rest, flagged, said);
    }
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

  #takeStart(rest: string, flagged: boolean, said: ThinkTagPiece): string {
    const begin = rest.trimStart();
    const opened = this.#rule.names.find((name) => begin.startsWith(`<${name}>`));
    if (opened !== undefined) return this.#open(opened, begin);
    if (flagged) {
      said.thinking += rest;
      return "";
    }
    const closed = this.#closedAt(begin);
    if (closed !== undefined) {
      this.#mode = "closed";
      return begin.slice(closed.length);
    }
    if (this.#tags().some((tag) => tag.startsWith(begin))) {
      this.#held = rest;
      return "";
    }
    this.#mode = "answer";
    return rest;
  }

  #takeAnswer(rest: string, flagged: boolean, said: ThinkTagPiece): string {
    if (flagged) {
      const opened = this.#rule.names.find((name) => rest.startsWith(`<${name}>`));
      if (opened !== undefined) return this.#open(opened, rest);
      said.thinking += rest;
      // The next answer text may begin with the closing tag.
      this.#mode = "start";
      return "";
    }
    if (!this.#rule.anywhere) {
      said.text += rest;
      return "";
    }
    const found = this.#firstOpening(rest);
    if (found === undefined) {
      said.text += this.#holdBack(rest, this.#tags());
      return "";
    }
    said.text += rest.slice(0, found.at);
    return this.#open(found.name, rest.slice(found.at));
  }

  #open(name: string, rest: string): string {
    this.#mode = "thinking";
    this.#closing = `</${name}>`;
    return rest.slice(name.length + 2);
  }

  /** Where the server flags thoughts, the tag that ends them may still stand at the start of the answer. */
  #closedAt(begin: string): string | undefined {
    if (!this.#sawFlagged) return undefined;
    return this.#rule.names.map((name) => `</${name}>`).find((tag) => begin.startsWith(tag));
  }

  #firstOpening(rest: string): { name: string; at: number } | undefined {
    return this.#rule.names
      .map((name) => ({ name, at: rest.indexOf(`<${name}>`) }))
      .filter(({ at }) => at !== -1)
      .sort((a, b) => a.at - b.at)[0];
  }

  #tags(): string[] {
    const { names } = this.#rule;
    const opening = names.map((name) => `<${name}>`);
    return this.#sawFlagged ? [...opening, ...names.map((name) => `</${name}>`)] : opening;
  }

  /** Keeps back an end that may be the beginning of a tag, and returns what comes before it. */
  #holdBack(rest: string, tags: readonly string[]): string {
    const at = rest.lastIndexOf("<");
    if (at === -1 || !tags.some((tag) => tag.startsWith(rest.slice(at)))) return rest;
    this.#held = rest.slice(at);
    return rest.slice(0, at);
  }
}
