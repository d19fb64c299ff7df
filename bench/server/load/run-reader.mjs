import { now } from "../clock.mjs";

/**
 * Reads the events of one run and proves them: the numbers in the tokens must come one after the other, and the last
 * event must hold exactly the text of all tokens.
 */
export class RunReader {
  /** Tokens so far. */
  tokens = 0;
  firstAt;
  ended = false;
  #chars = 0;
  #onToken;

  /** `onToken` is told how old each token is, in milliseconds. */
  constructor(onToken) {
    this.#onToken = onToken;
  }

  /** One event in our wire format. @throws Error when the run is not what it should be. */
  read(json) {
    const at = json.indexOf(TOKEN);
    if (at === -1) return this.#other(JSON.parse(json));
    this.take(json, at + TOKEN.length);
  }

  /** The tokens that stand in a JSON text from here to the next quotation mark. */
  take(json, from) {
    const end = json.indexOf('"', from);
    if (end === -1) throw new Error(`no text of tokens: ${json.slice(0, 200)}`);
    this.#chars += end - from;
    const time = now();
    this.firstAt ??= time;
    let start = from;
    while (start < end) {
      const dot = json.indexOf(".", start);
      const space = json.indexOf(" ", start);
      const number = Number.parseInt(json.slice(start, dot), 36);
      if (number !== this.tokens) {
        throw new Error(`token ${number} came where ${this.tokens} was due: ${json.slice(0, 200)}`);
      }
      this.tokens++;
      this.#onToken?.(time - Number.parseInt(json.slice(dot + 1, space), 36) / 1000);
      start = space + 1;
    }
  }

  #other(event) {
    switch (event.type) {
      case "done":
        if (event.data.length !== this.#chars) {
          throw new Error(`done holds ${event.data.length} characters, not ${this.#chars}`);
        }
        this.ended = true;
        return;
      case "error":
        throw new Error(`the server sent an error: ${event.data} (${event.code})`);
      default:
    }
  }
}

const TOKEN = '"type":"token","data":"';
const CONTENT = '"content":"';

/** Events of a `text/event-stream` from pieces of text. */
export class EventStreamReader {
  #rest = "";
  #take;

  constructor(run) {
    this.#take = (data) => run.read(data);
  }

  feed(text) {
    const all = this.#rest === "" ? text : this.#rest + text;
    let from = 0;
    for (let end = all.indexOf("\n\n"); end !== -1; end = all.indexOf("\n\n", from)) {
      const data = all.indexOf("data:", from);
      if (data !== -1 && data < end) this.take(all.slice(data + 5, end));
      from = end + 2;
    }
    this.#rest = all.slice(from);
  }

  take(data) {
    this.#take(data);
  }
}

/** The same for the provider's own chunks, when it is asked without a server in between. */
export class ProviderStreamReader extends EventStreamReader {
  #run;

  constructor(run) {
    super(run);
    this.#run = run;
  }

  take(data) {
    const at = data.indexOf(CONTENT);
    if (at !== -1) this.#run.take(data, at + CONTENT.length);
    else if (data.includes("[DONE]")) this.#run.ended = true;
  }
}
