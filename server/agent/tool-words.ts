/** Texts that people read in place of a tool's name and data, and how much of its calls leaves the server. */

import { createHash } from "node:crypto";
import { Late, within } from "../config/within.ts";
import { AgentNotice, ConfigError } from "../errors.ts";
import type { RunEvent, RunObserver } from "../observe/run-observer.ts";
import type { ToolText } from "../protocol/chat.ts";
import type { ToolCallEvent, ToolResultEvent } from "../protocol/events.ts";
import { isRecord } from "../protocol/json.ts";
import { MAX_TEXT_CHARS, plainText, UNFIT } from "./plain-text.ts";
import type { RunContext } from "./run-context.ts";

/** `title`: clients get only the title of a call. `none`: they do not learn of the call. */
export type Expose = "all" | "title" | "none";

/** A tool's texts for people, as an author defines them. */
export interface WordsDefinition<Arguments, Result> {
  /** What people read in place of the name. For several languages, an object: `{ en: "Weather", de: "Wetter" }`. */
  title?: ToolText;
  /** What people read while a call runs, in place of the title. */
  running?(args: Arguments): ToolText | Promise<ToolText>;
  /** What people read when a call has succeeded. `result` is what `execute` returned. */
  done?(args: Arguments, result: Result): ToolText | Promise<ToolText>;
  /**
   * How much of a call leaves the server, in events and in the conversation's state: `all` (default), only its `title`,
   * or `none`. It does not limit what the model says about the call.
   */
  expose?: Expose;
}

/** The same, checked. */
export interface ToolWords {
  readonly name: string;
  readonly title: ToolText | undefined;
  readonly running: ((args: unknown) => unknown) | undefined;
  readonly done: ((args: unknown, result: unknown) => unknown) | undefined;
  readonly expose: Expose;
  /** The tool runs elsewhere. Its agent may have other tools, which are not listed and hide nothing. */
  readonly runsElsewhere?: boolean;
}

export const MAX_LANGUAGES = 100;
export const LANGUAGE = /^[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8})*$/;

/** @throws ConfigError that names the field and says what is right */
export function checkWords(definition: Record<string, unknown>, name: string): ToolWords {
  const { title, expose = "all" } = definition;
  if (expose !== "all" && expose !== "title" && expose !== "none") {
    throw new ConfigError(`expose of the tool "${name}" must be "all", "title" or "none".`);
  }
  if (title !== undefined) checkTitle(title, `title of the tool "${name}"`);
  else if (expose === "title") {
    throw new ConfigError(`The tool "${name}" has expose: "title" and no title. Add title: "…", which people read.`);
  }
  return {
    name,
    title: title as ToolText | undefined,
    running: checkFunction(definition, "running", name),
    done: checkFunction(definition, "done", name),
    expose,
  };
}

function checkFunction(
  definition: Record<string, unknown>,
  field: "running" | "done",
  name: string,
): ((...args: unknown[]) => unknown) | undefined {
  const make = definition[field];
  if (make === undefined) return undefined;
  if (typeof make === "function") return (...args) => make.apply(definition, args);
  throw new ConfigError(
    `${field} of the tool "${name}" must be a function that returns a text, such as (args) => "…".`,
  );
}

function checkTitle(title: unknown, label: string): void {
  const texts = isRecord(title) ? Object.entries(title) : [["", title] as const];
  if (texts.length === 0 || texts.length > MAX_LANGUAGES) {
    throw new ConfigError(`${label} must be a text, or texts by language: { en: "…", de: "…" }.`);
  }
  for (const [language, text] of texts) {
    const at = language === "" ? label : `${label} for "${language}"`;
    if (isRecord(title) && !LANGUAGE.test(language)) {
      throw new ConfigError(
        `${label} has a text for "${language}", which is no language. Use codes such as "en" or "pt-BR".`,
      );
    }
    if (typeof text !== "string" || text.trim() === "")
      throw new ConfigError(`${at} must be a text that is not empty.`);
    if (text.length > MAX_TEXT_CHARS) throw new ConfigError(`${at} must be at most ${MAX_TEXT_CHARS} characters.`);
    if (text.search(UNFIT) !== -1) {
      throw new ConfigError(`${at} must have no line breaks, control characters or marks of direction.`);
    }
  }
}

/** The run that asks a function of the author, and how long that may take. */
export interface Asking {
  readonly context: RunContext;
  readonly observer: RunObserver;
  readonly hookMs: number;
}

/** The text that a function of the author returns for a call; the title if it returns none in time. */
export async function madeTitle(
  tool: ToolWords,
  field: "running" | "done",
  make: () => unknown,
  asking: Asking,
): Promise<ToolText | undefined> {
  if (tool[field] === undefined) return tool.title;
  const rule = { read: toText, otherwise: tool.title, consequence: "People read its title." };
  // If the run was aborted, its calls still get their titles.
  return madeBy(`${field} of the tool "${tool.name}"`, make, rule, asking).catch(() => tool.title);
}

/** How to read the value that a function of the author returns, and what to use if it returns no such value in time. */
interface Rule<Value> {
  /** @throws TypeError */
  read(given: unknown): Value;
  readonly otherwise: Value;
  /** A sentence for the log about the use of `otherwise`. */
  readonly consequence: string;
}

/** The value that a function of the author returns for a call, or `otherwise`. Rejects with the reason of an abort. */
export async function madeBy<Value>(
  what: string,
  make: (signal: AbortSignal) => unknown,
  { read, otherwise, consequence }: Rule<Value>,
  { context, observer, hookMs }: Asking,
): Promise<Value> {
  try {
    return read(await within(make, hookMs, context.signal));
  } catch (cause) {
    context.signal.throwIfAborted();
    const isLate = cause instanceof Late;
    const how = isLate ? cause.message : "failed";
    observer.failure(new AgentNotice(`${what} ${how}. ${consequence}`, isLate ? {} : { cause }));
    return otherwise;
  }
}

/** The error does not quote the value: it may contain the words of a user. @throws TypeError */
function toText(made: unknown): ToolText {
  const texts = isRecord(made) ? Object.entries(made) : [["en", made] as const];
  const clean = texts.map(([language, text]) => {
    const plain = typeof text === "string" ? plainText(text) : "";
    if (plain === "" || !LANGUAGE.test(language)) throw notText();
    return [language, plain] as const;
  });
  const [first] = clean;
  if (first === undefined || clean.length > MAX_LANGUAGES) throw notText();
  return isRecord(made) ? Object.fromEntries(clean) : first[1];
}

function notText(): TypeError {
  return new TypeError("It must return a text that is not empty, or texts by language.");
}

/** For a call of a tool that does not exist: its name and arguments may be meant for a tool that hides its calls. */
const UNKNOWN: ToolWords = { name: "", title: undefined, running: undefined, done: undefined, expose: "none" };

/** The tool that hides calls by this name (`UNKNOWN` if there is none); `undefined` if nothing of them is hidden. */
export function hiderOf<Tool extends ToolWords>(tools: ReadonlyMap<string, Tool>, name: string): ToolWords | undefined {
  const tool = tools.get(name);
  if (tool !== undefined) return tool.expose === "all" ? undefined : tool;
  return [...tools.values()].some((one) => one.expose !== "all" && !one.runsElsewhere) ? UNKNOWN : undefined;
}

export function hidesAny(tools: ReadonlyMap<string, ToolWords>): boolean {
  for (const { expose } of tools.values()) if (expose !== "all") return true;
  return false;
}

/** The fields of a hidden call as clients get them, in events and approvals; `undefined` if they get no event of it. */
export function shownCall({ id }: { id: string }, { name, title = "", expose }: ToolWords) {
  if (expose === "none") return undefined;
  return { id: shownId(id, name), tool: titleText(title), arguments: "{}" };
}

/** A title as one text, for clients that do not support several languages. */
export function titleText(title: ToolText = ""): string {
  return typeof title === "string" ? title : (title.en ?? Object.values(title)[0] ?? "");
}

/** Replaces an id that contains the tool's name: some models make such ids. */
export function shownId(id: string, name: string): string {
  return id.includes(name) ? createHash("sha256").update(id).digest("base64url").slice(0, 22) : id;
}

/** An event of a call, with both forms if it is hidden: the whole one for the server, and the one for clients. */
export function hiddenBy(event: ToolCallEvent | ToolResultEvent, hider: ToolWords | undefined): RunEvent {
  if (hider === undefined) return event;
  const call = shownCall(event.data, hider);
  if (call === undefined) return { type: "hidden", event, shown: undefined };
  const { id, tool } = call;
  if (event.type === "tool_call")
    return { type: "hidden", event, shown: { ...event, data: { ...event.data, ...call } } };
  const { images: _images, images_omitted: _omitted, ...data } = event.data;
  return { type: "hidden", event, shown: { ...event, data: { ...data, id, tool, output: "" } } };
}
