/** `GET /v1/models` and `POST /v1/chat/completions`: the agent as a model for OpenAI's clients. */

import { digestOf } from "../agent/state.ts";
import type { Caller } from "../auth/access.ts";
import type { RequestContext } from "../http/request.ts";
import { sendJson } from "../http/respond.ts";
import type { Routes } from "../http/routes.ts";
import type { FinishReason, Usage } from "../protocol/chat.ts";
import { ApiError, fieldOf, invalidRequest } from "../protocol/errors.ts";
import { type DoneEvent, isTerminal, type NumberedEvent, type TerminalEvent } from "../protocol/events.ts";
import type { SourceEvent } from "../protocol/sources.ts";
import { answerAt, doneEvent, failureOf } from "../routes/chat.ts";
import type { BegunAnswer, Door } from "../routes/door.ts";
import type { Asked } from "../routes/message.ts";
import type { Service } from "../routes/service.ts";
import type { RunReader } from "../runs/run-handle.ts";
import { inEnglish, waitingWords } from "./words.ts";

const DOOR: Door = {
  parser: "openai",
  transport: () => "openai",
  nameOf,
  headers,
  encoder: (answer) => new ChunkEncoder(answer).encode,
  body: completion,
};

export function routesOf(service: Service): Routes {
  const created = seconds();
  const answer = answerAt(service, DOOR);
  return {
    "GET /v1/models": {
      access: "operator",
      handle({ res }) {
        const { id, agent: name } = service.runtime.current.agent;
        sendJson(res, 200, { object: "list", data: [{ id, object: "model", created, owned_by: "parley", name }] });
      },
    },
    "POST /v1/chat/completions": {
      access: "operator",
      async handle(context, caller) {
        try {
          await answer(context, caller);
        } catch (thrown) {
          const error = inOwnWords(thrown);
          // Judging by the status alone, OpenAI's clients would retry requests that would run tools again.
          if (error instanceof ApiError && !error.retryable) context.res.setHeader("x-should-retry", "false");
          throw error;
        }
      },
    },
  };
}

/** OpenAI's clients do not know runs: a run's name comes from the header. */
function inOwnWords(thrown: unknown): unknown {
  if (!(thrown instanceof ApiError) || thrown.param !== "/run") return thrown;
  return invalidRequest("", "This Idempotency-Key belongs to another message. Use a new one for each message.");
}

/** The body of an error, in OpenAI's format. */
export function errorBody({ message, status, code, param = "" }: ApiError): object {
  const field = fieldOf(param);
  return { error: { message, type: TYPES[status] ?? typeOf(status), param: field === "" ? null : field, code } };
}

const TYPES: Readonly<Record<number, string>> = {
  401: "authentication_error",
  403: "permission_error",
  429: "rate_limit_error",
};

const typeOf = (status: number): string => (status < 500 ? "invalid_request_error" : "server_error");

const MAX_KEY_CHARS = 255;

/** A message that is sent again with the same `Idempotency-Key` gets the answer that was begun. */
function nameOf({ req }: RequestContext, { keyId }: Caller): string | undefined {
  const key = req.headers["idempotency-key"]?.toString() ?? "";
  if (key.length > MAX_KEY_CHARS) {
    throw invalidRequest("", `The header Idempotency-Key must have at most ${MAX_KEY_CHARS} characters.`);
  }
  return key === "" ? undefined : digestOf([keyId, key]);
}

/** More names than any client sends. */
const MAX_NAMES = 40;

function headers({ ignored = [] }: Asked): Record<string, string> {
  // A field's name can be any text, but the value of a header cannot.
  const names = ignored.filter((name) => /^[\w.-]{1,64}$/.test(name)).slice(0, MAX_NAMES);
  return names.length === 0 ? {} : { "x-parley-ignored": names.join(", ") };
}

const seconds = (): number => Math.floor(Date.now() / 1000);

/** The finish reasons for which OpenAI has a word; any other is `stop`. */
const FINISH: Partial<Record<FinishReason, string>> = {
  length: "length",
  max_turns: "length",
  content_filter: "content_filter",
};

const finishOf = ({ finish_reason: reason }: DoneEvent): string => FINISH[reason] ?? "stop";

/** The approvals and questions that wait for a person, as text at the end of the answer. */
const wordsOf = (event: DoneEvent): string => waitingWords(event).join("\n\n");

type ToolEvent = Extract<NumberedEvent, { type: "tool_call" | "tool_progress" | "tool_result" }>;
type Field = "content" | "reasoning_content";
type Turn = Partial<Record<Field, string>> & { sources?: SourceEvent["data"][] };

/** Separates pieces of text, and of thinking, by a blank line wherever tools have run in between. */
class Words {
  readonly #begun = new Set<Field>();
  /** The fields that had begun before tools ran: their next piece follows a blank line. */
  readonly #parted = new Set<Field>();
  /** The text since then as Parley's own clients have it, and the length of all text here. */
  #content = "";
  #length = 0;
  /** The sources of the text, in OpenAI's format. */
  readonly #annotations: object[] = [];

  get annotations(): { annotations?: object[] } {
    return this.#annotations.length === 0 ? {} : { annotations: this.#annotations };
  }

  /** Adds a source of the text so far. Files are left out, since OpenAI's clients could not open them. */
  annotate({ url, title, at }: SourceEvent["data"]): void {
    if (url === undefined) return;
    const place = at === undefined ? 0 : Math.max(0, this.#length - (this.#content.length - at));
    this.#annotations.push({
      type: "url_citation",
      url_citation: { url, title, start_index: place, end_index: place },
    });
  }

  /** Called when tools run, and before text that is added at the end. */
  part(): void {
    this.#content = "";
    for (const field of this.#begun) this.#parted.add(field);
  }

  /** The piece as it follows those before it, or "" if nothing is left of it: thinking is often a single line break. */
  add(field: Field, piece: string): string {
    const text = this.#apart(field, piece);
    if (field === "content") {
      this.#content += piece;
      this.#length += text.length;
      // Text that proved to be thinking arrives again as such.
    } else if (piece === this.#content) this.#content = "";
    return text;
  }

  #apart(field: Field, piece: string): string {
    const isParted = this.#parted.has(field);
    const isTrimmed = isParted || (field === "reasoning_content" && !this.#begun.has(field));
    const text = isTrimmed ? piece.trimStart() : piece;
    if (text === "") return "";
    if (text.trim() !== "") this.#begun.add(field);
    this.#parted.delete(field);
    return isParted ? `\n\n${text}` : text;
  }

  /** Joins whole turns into the text that a stream would have. */
  join(field: Field, turns: readonly Turn[]): string {
    let text = "";
    for (const turn of turns) {
      text += this.add(field, turn[field] ?? "");
      if (field === "content") for (const source of turn.sources ?? []) this.annotate(source);
      this.part();
    }
    return text;
  }
}

/** Encodes an answer as `chat.completion.chunk`s. */
class ChunkEncoder {
  readonly #asked: Asked;
  readonly #words = new Words();
  /** The beginning of every chunk. */
  readonly #head: string;
  #hasBegun = false;

  constructor({ run, agent, asked }: BegunAnswer) {
    this.#asked = asked;
    const chunk = { id: idOf(run), object: "chat.completion.chunk", created: seconds(), model: agent };
    this.#head = `data: ${JSON.stringify(chunk).slice(0, -1)}`;
  }

  readonly encode = (event: NumberedEvent): string => {
    if (event.type === "error") return `data: ${JSON.stringify(errorBody(failureOf(event)))}\n\n${LAST}`;
    const begin = this.#hasBegun ? "" : this.#choice({ role: "assistant", content: "" });
    this.#hasBegun = true;
    return begin + this.#encode(event);
  };

  #encode(event: NumberedEvent): string {
    switch (event.type) {
      case "token":
        return this.#delta("content", event.data);
      case "thinking":
        return this.#delta("reasoning_content", event.data);
      case "tool_call":
      case "tool_result":
        this.#words.part();
        return this.#status(event);
      case "tool_progress":
        return this.#status(event);
      case "source":
        this.#words.annotate(event.data);
        return "";
      case "done":
        return this.#end(event);
      default:
        return "";
    }
  }

  #end(event: DoneEvent): string {
    const usage = this.#asked.usage && event.usage;
    const counted = usage ? `${this.#head},"choices":[],"usage":${JSON.stringify(usageOf(usage))}}\n\n` : "";
    this.#words.part();
    return (
      this.#delta("content", wordsOf(event)) + this.#choice(this.#words.annotations, finishOf(event)) + counted + LAST
    );
  }

  #delta(field: Field, piece: string): string {
    const text = this.#words.add(field, piece);
    return text === "" ? "" : this.#choice({ [field]: text });
  }

  /** Open WebUI shows this as the status of the answer. Not in `tool_calls`, which clients would carry out. */
  #status(event: ToolEvent): string {
    return `${this.#head},"choices":[],"event":${JSON.stringify({ type: "status", data: statusOf(event) })}}\n\n`;
  }

  #choice(delta: object, finish: string | null = null): string {
    return `${this.#head},"choices":[{"index":0,"delta":${JSON.stringify(delta)},"finish_reason":${JSON.stringify(finish)}}]}\n\n`;
  }
}

const LAST = "data: [DONE]\n\n";

const idOf = (run: string): string => `chatcmpl-${run}`;

function statusOf(event: ToolEvent) {
  if (event.type === "tool_progress") return { description: event.data.text, done: false };
  const { tool, title = tool } = event.data;
  return { description: inEnglish(title), done: event.type === "tool_result" };
}

function usageOf(usage: Usage): object {
  const { input_tokens: prompt, output_tokens: completion } = usage;
  const { cached_input_tokens: cached, cache_write_tokens: written, reasoning_tokens: reasoning } = usage;
  const isOfCache = cached !== undefined || written !== undefined;
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    ...(isOfCache && { prompt_tokens_details: { cached_tokens: cached, cache_write_tokens: written } }),
    ...(reasoning !== undefined && { completion_tokens_details: { reasoning_tokens: reasoning } }),
  };
}

/** The answer as one `chat.completion`. @throws ApiError when the run failed */
async function completion(reader: RunReader, { run, agent }: BegunAnswer): Promise<object> {
  const newTurn = () => ({ content: "", reasoning_content: "", sources: [] as SourceEvent["data"][] });
  const turns = [newTurn()];
  let last: TerminalEvent | undefined;
  for await (const events of reader) {
    for (const event of events) {
      const turn = turns.at(-1) as (typeof turns)[number];
      if (event.type === "token") turn.content += event.data;
      if (event.type === "thinking") {
        // Text that proved to be thinking arrives again as such.
        if (event.data === turn.content) turn.content = "";
        turn.reasoning_content += event.data;
      }
      if (event.type === "source") turn.sources.push(event.data);
      if (event.type === "tool_call" || event.type === "tool_result") turns.push(newTurn());
      if (isTerminal(event)) last = event;
    }
  }
  const done = doneEvent(last);
  const words = new Words();
  const content = words.join("content", [...turns, { content: wordsOf(done) }]);
  const thoughts = words.join("reasoning_content", turns);
  const beside = { ...(thoughts && { reasoning_content: thoughts }), ...words.annotations };
  const message = { role: "assistant", content, refusal: null, ...beside };
  return {
    ...{ id: idOf(run), object: "chat.completion", created: seconds(), model: agent },
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishOf(done) }],
    ...(done.usage === undefined ? {} : { usage: usageOf(done.usage) }),
  };
}
