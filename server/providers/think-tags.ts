/** The tags that mark reasoning inside the text of an answer. */
export interface ThinkTagRule {
  /** Names of the tags: "think" for `<think>…</think>`. */
  readonly names: readonly string[];
  /**
   * Whether tags also count after the first word. Only for a tag that the server inserts and no model writes: an answer
   * may be about other tags.
   */
  readonly anywhere: boolean;
  /** Whether the opening tag may be in the prompt, so that an answer has only the closing tag after its thoughts. */
  readonly mayLackOpening: boolean;
}

/**
 * The tags that Qwen, DeepSeek, MiniMax (`think`), Gemma (`thought`) and Nova (`thinking`) write if their server does
 * not remove them.
 */
export const MODEL_TAGS: ThinkTagRule = {
  names: ["think", "thought", "thinking"],
  anywhere: false,
  mayLackOpening: true,
};

/** The thinking and the text of a piece of an answer. Within one piece thinking comes before text. */
export interface ThinkTagPiece {
  thinking: string;
  text: string;
  /** All text of the earlier pieces was thinking, too. */
  wasThinking?: true;
}

/** Separates reasoning in tags from an answer that arrives in pieces of any size. */
export class ThinkTags {
  /** Whether a piece without "<" is text unchanged, unless the server flags it as thinking. */
  passesText = false;
  readonly #openings: readonly string[];
  readonly #closings: readonly string[];
  readonly #anywhere: boolean;
  #mode: "start" | "thinking" | "closed" | "answer" = "start";
  /** The end of the text so far, as long as it may turn out to be a tag. */
  #held = "";
  /** The tag that ends the thinking. */
  #closing = "";
  #sawFlagged = false;
  /** Whether a closing tag would end thoughts whose opening tag has not arrived. */
  #mayLackOpening: boolean;
  readonly #anyTag: RegExp;
  readonly #textSoFar: () => string;

  /** `textSoFar`: the text of all earlier pieces. `hasBegun`: that text has words, and no "<". */
  constructor({ names, anywhere, mayLackOpening }: ThinkTagRule, textSoFar: () => string, hasBegun = false) {
    this.#openings = names.map((name) => `<${name}>`);
    this.#closings = names.map((name) => `</${name}>`);
    this.#anywhere = anywhere;
    this.#mayLackOpening = mayLackOpening;
    this.#anyTag = new RegExp(`<(/?)(?:${names.join("|")})>`);
    this.#textSoFar = textSoFar;
    if (hasBegun) this.#mode = "answer";
  }

  /** The server itself marks what is thinking: tags in the text belong to the answer. */
  sawThinking(): void {
    this.#sawFlagged = true;
    this.#mayLackOpening = false;
  }

  /** Reads the next piece; `flagged`: the server says that all of it is thinking. */
  push(piece: string, flagged = false): ThinkTagPiece {
    const said: ThinkTagPiece = { thinking: "", text: "" };
    let rest = this.#held + piece;
    this.#held = "";
    if (flagged) this.sawThinking();
    while (rest !== "") rest = this.#take(rest, flagged, said);
    this.passesText = this.#mode === "answer" && !this.#anywhere && this.#held === "";
    return said;
  }

  /** Returns the end that was held back and turned out not to be a tag. */
  end(): ThinkTagPiece {
    const held = this.#held;
    this.#held = "";
    return this.#mode === "thinking" ? { thinking: held, text: "" } : { thinking: "", text: held };
  }

  /** Sorts the beginning of `rest` into `said`, and returns the remainder. */
  #take(rest: string, flagged: boolean, said: ThinkTagPiece): string {
    if (this.#mode === "thinking") return this.#takeThinking(rest, said);
    if (this.#mode === "closed") {
      const answer = rest.trimStart();
      if (answer !== "") this.#mode = "answer";
      return answer;
    }
    const isStart = this.#mode === "start";
    if (!isStart && !flagged && !this.#anywhere) {
      if (this.#mayLackOpening && rest.includes("<")) return this.#takeUpToClosing(rest, said);
      said.text += rest;
      return "";
    }
    const begin = isStart ? rest.trimStart() : rest;
    const opened = this.#openings.find((tag) => begin.startsWith(tag));
    if (opened !== undefined) {
      this.#mode = "thinking";
      this.#mayLackOpening = false;
      this.#closing = `</${opened.slice(1)}`;
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
    // Where the server flags thoughts, or there were none, the answer may still begin with the tag that ends them.
    const closing = this.#sawFlagged || this.#mayLackOpening ? this.#closings : [];
    const closed = closing.find((tag) => begin.startsWith(tag));
    if (closed !== undefined) {
      this.#mode = "closed";
      this.#mayLackOpening = false;
      return begin.slice(closed.length);
    }
    if ([...this.#openings, ...closing].some((tag) => tag.startsWith(begin))) {
      this.#held = rest;
      return "";
    }
    this.#mode = "answer";
    return rest;
  }

  /** The first tag decides: a closing tag outside of code ends thoughts; any other belongs to the answer. */
  #takeUpToClosing(rest: string, said: ThinkTagPiece): string {
    const tag = this.#anyTag.exec(rest);
    if (tag === null) {
      said.text += this.#holdBack(rest, [...this.#openings, ...this.#closings]);
      return "";
    }
    this.#mayLackOpening = false;
    const before = said.text + rest.slice(0, tag.index);
    if (tag[1] === "" || endsInCode(this.#textSoFar() + before)) return rest;
    said.thinking += before;
    said.text = "";
    said.wasThinking = true;
    this.#mode = "closed";
    return rest.slice(tag.index + tag[0].length);
  }

  #takeUpToTag(rest: string, said: ThinkTagPiece): string {
    const places = this.#openings.map((tag) => rest.indexOf(tag)).filter((at) => at !== -1);
    if (places.length > 0) {
      const at = Math.min(...places);
      said.text += rest.slice(0, at);
      return rest.slice(at);
    }
    said.text += this.#holdBack(rest, this.#openings);
    return "";
  }

  /** Holds back an end that may be the beginning of a tag, and returns the text before it. */
  #holdBack(rest: string, tags: readonly string[]): string {
    const at = rest.lastIndexOf("<");
    if (at === -1 || !tags.some((tag) => tag.startsWith(rest.slice(at)))) return rest;
    this.#held = rest.slice(at);
    return rest.slice(0, at);
  }
}

/** Whether text after this Markdown would be inside a code block or a code span. */
function endsInCode(text: string): boolean {
  let fence = "";
  let line = "";
  for (line of text.split("\n")) {
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1] ?? "";
    if (fence === "") fence = mark;
    else if (mark.startsWith(fence)) fence = "";
  }
  // The last line without its complete code spans.
  return fence !== "" || line.replace(/(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)/g, "").includes("`");
}
