/** Exports a conversation as text. */

import "../i18n/add-part-texts.ts";
import { toJson } from "../../server/protocol/json.ts";
import { type Block, joinedBlocks, type Message, type TextBlock } from "../conversations/messages.ts";
import { formatMoment } from "../i18n/format.ts";
import { failureText, type Strings } from "../i18n/strings.ts";
import type { BlockModule, TranscriptBlock } from "./block-module.ts";
import { isHidden, kindOf } from "./blocks.ts";
import type { ChatContext } from "./context.ts";
import { footnoted, sourcesOf } from "./sources.ts";

/** `markdown` is for people, `json` for programs. */
export type TranscriptFormat = "markdown" | "json";

const writers = { markdown: asMarkdown, json: asJson };

type Exporting = Pick<ChatContext, "strings" | "agent" | "modes">;

interface Entry {
  readonly message: Message;
  /** The blocks of an answer, without those that are hidden. */
  readonly blocks: readonly TranscriptBlock[];
}

/** Rejects with a `TypeError` for a format that is neither `markdown` nor `json`. */
export async function exportTranscript(
  format: string,
  messages: readonly Message[],
  { strings, agent, modes }: Exporting,
): Promise<string> {
  if (!Object.hasOwn(writers, format)) {
    throw new TypeError(`exportTranscript: format must be markdown or json, not "${format}"`);
  }
  const transcribed = async (block: Block) => {
    const { transcribe } = (await kindOf(block).element?.module.load()) ?? textModule;
    return transcribe(block, strings, modes);
  };
  const withSources = messages.filter((it) => it.role === "assistant" && it.blocks.some(({ sources }) => sources));
  const entries = messages.map(async (message): Promise<Entry> => {
    const blocks = message.role === "assistant" ? joinedBlocks(message.blocks) : [];
    const shown = await Promise.all(blocks.filter((block) => !isHidden(block, modes)).map(transcribed));
    const place = withSources.indexOf(message);
    if (message.role !== "assistant" || place < 0) return { message, blocks: shown };
    // Footnote labels must be unique in the whole document.
    const [notes = "", ...texts] = footnoted(message, place > 0 ? `${place + 1}-` : "").toReversed();
    const noted = shown.map(({ parts, json }): TranscriptBlock => {
      const isText = (json as Block).type === "text";
      return { parts: isText ? [["text", texts.pop() ?? ""]] : parts, json };
    });
    const list: TranscriptBlock = {
      parts: [["text", notes]],
      json: { type: "sources", sources: sourcesOf(message.blocks).sources },
    };
    return { message, blocks: [...noted, list] };
  });
  return writers[format as TranscriptFormat](await Promise.all(entries), strings, agent);
}

/** For texts, whose kind has no module of its own. */
const textModule: BlockModule<TextBlock> = {
  transcribe: ({ type, text }) => ({ parts: [["text", text.trim()]], json: { type, text } }),
};

/** How each part of a block is written. */
const partWriters = { text: contained, quote, name: inlineCode, data: codeBlock };

function asMarkdown(entries: readonly Entry[], strings: Strings, agent: string): string {
  const texts = entries.map(({ message, blocks }) => {
    const { role, at } = message;
    const isOfPage = role === "page";
    const said = role === "user" ? strings.you : strings.agentSaid((isOfPage && message.name) || agent);
    // Not said by the agent but by the page, so its host is named.
    const origin = isOfPage ? ` (${location.hostname})` : "";
    const speaker = `## ${inOneLine(said)}${origin}${at === undefined ? "" : ` ${formatMoment(at, strings.lang)}`}`;
    if (role === "page") return joined([speaker, contained(message.text.trim())]);
    if (role === "user") {
      const files = message.files.map(({ name }) => `- ${inlineCode(name)}`).join("\n");
      return joined([speaker, contained(message.text), files]);
    }
    const parts = blocks.flatMap(({ parts }) => parts).filter(([, text]) => text !== "");
    const failed = message.failure ? quote(failureText(message.failure, strings)) : "";
    return joined([speaker, ...parts.map(([kind, text]) => partWriters[kind](text)), failed]);
  });
  return `${joined(texts)}\n`;
}

function quote(text: string): string {
  return contained(text).replace(/^/gm, "> ");
}

function inOneLine(text: string): string {
  return contained(text.replace(/\s+/g, " "));
}

/** The start of a fenced code block: indent and list marker, then the fence. */
const FENCE = /^( {0,3}(?:(?:[-*+]|\d{1,9}[.)]) {1,4})?)(`{3,}(?=[^`]*$)|~{3,})/;

/** A heading with `#`, and a line that turns the text above it into a heading. */
const HEADING = /^((?: {0,3}(?:>|[-*+]|\d{1,9}[.)]))*[ \t]{0,3})(#{1,4})(?=\s|$)/;
const UNDERLINE = /^([ >\t]*)(?=(?:=+|-+)[ \t]*$)/;

/** Escapes, images and HTML; and these together with code spans and link destinations. */
const OPENING = /\\.|!(?=\[)|<(?=[a-z/!?])/gi;
const INLINE = new RegExp(`(?<!\`)(\`+)(?!\`)(?:(.*?)(?<!\`)\\1(?!\`))?|\\][[(]|${OPENING.source}`, "gi");

const escaped = (opening: string) => (/^[\\\]]/.test(opening) ? opening : `\\${opening}`);

/**
 * Confines the Markdown of a message: it makes no heading of the speakers' level, leaves no code block open, and loads
 * nothing. Images become links, and HTML becomes text. What may be code or text counts as text.
 */
function contained(text: string): string {
  const lines: string[] = [];
  let fence: { readonly indent: number; readonly mark: string } | undefined;
  /** False once a code span, or a link with backticks, may still be open in the paragraph. */
  let isSure = true;
  const close = () => {
    if (fence) lines.push(" ".repeat(fence.indent) + fence.mark);
    fence = undefined;
  };
  for (const line of text.replace(/\r\n?|\f|\v/g, "\n").split("\n")) {
    const [, end = ""] = /^[ \t]*(`+|~+)[ \t]*$/.exec(line) ?? [];
    if (fence && end.startsWith(fence.mark)) {
      close();
      continue;
    }
    if (fence && (line.trim() === "" || line.search(/[^ ]/) >= fence.indent)) {
      lines.push(line);
      continue;
    }
    close();
    const [, before = "", mark] = FENCE.exec(line) ?? [];
    const isBlank = line.trim() === "";
    if (isBlank || mark) isSure = true;
    if (mark) {
      // After a blank line any number begins a list item; in the middle of a paragraph only some do.
      if (/\d/.test(before)) lines.push("");
      fence = { indent: before.length, mark };
      lines.push(line);
      continue;
    }
    const isBelowText = (lines.at(-1) ?? "").trim() !== "";
    const cells = line.replace(HEADING, "$1##$2").replace(UNDERLINE, isBelowText ? "$1\\" : "$1");
    const inline = (cell: string) =>
      cell.replace(INLINE, (whole: string, run?: string, body?: string) => {
        isSure &&= !whole.startsWith("]") && (run === undefined || body !== undefined);
        if (run === undefined) return escaped(whole);
        return isSure || body === undefined ? whole : run + body.replace(OPENING, escaped) + run;
      });
    lines.push(cells.split("|").map(inline).join("|"));
  }
  close();
  return lines.join("\n");
}

function joined(texts: readonly string[]): string {
  return texts.filter((text) => text !== "").join("\n\n");
}

/** A fence longer than any in the text, which therefore cannot end it. */
function fenceFor(text: string, shortest: number): string {
  const longest = Math.max(0, ...(text.match(/`+/g) ?? []).map(({ length }) => length));
  return "`".repeat(Math.max(shortest, longest + 1));
}

function codeBlock(text: string): string {
  const fence = fenceFor(text, 3);
  return `${fence}\n${text}\n${fence}`;
}

function inlineCode(text: string): string {
  const fence = fenceFor(text, 1);
  const gap = /^`|`$/.test(text) ? " " : "";
  return `${fence}${gap}${text.replace(/\s+/g, " ")}${gap}${fence}`;
}

function asJson(entries: readonly Entry[], strings: Strings): string {
  const written = entries.map(({ message, blocks }) => {
    const { role } = message;
    const at = message.at === undefined ? undefined : new Date(message.at).toISOString();
    if (role === "user") {
      const files = message.files.map(({ name, mediaType, size }) => ({ name, mime_type: mediaType, size }));
      return { role, at, text: message.text, ...(files.length > 0 ? { files } : {}) };
    }
    if (role === "page") return { role, at, name: message.name, text: message.text };
    const { status, finishReason, failure, feedback } = message;
    const error = failure && {
      code: failure.code,
      message: failureText(failure, strings),
      reference: failure.reference,
    };
    return {
      role,
      at,
      status,
      finish_reason: finishReason,
      error,
      feedback,
      blocks: blocks.map(({ json }) => json),
    };
  });
  return toJson(written, 2);
}
