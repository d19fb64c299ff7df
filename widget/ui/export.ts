/** A conversation as a text. */

import { toJson } from "../../server/protocol/json.ts";
import { formatMoment } from "../i18n/format.ts";
import { failureText, type Strings, toolName } from "../i18n/strings.ts";
import { type Block, joinedBlocks, type Message, type ToolBlock } from "../session/messages.ts";
import type { ChatContext } from "./context.ts";

/** `markdown` is to be read, `json` for programs. */
export type TranscriptFormat = "markdown" | "json";

const writers = { markdown: asMarkdown, json: asJson };

type Exporting = Pick<ChatContext, "strings" | "agent" | "modes">;

/** Without steps that are hidden. Throws a `TypeError` for a format that is neither `markdown` nor `json`. */
export function exportTranscript(
  format: string,
  messages: readonly Message[],
  { strings, agent, modes }: Exporting,
): string {
  if (!Object.hasOwn(writers, format)) {
    throw new TypeError(`exportTranscript: format must be markdown or json, not "${format}"`);
  }
  const shown = messages.map((message) => withoutHidden(message, modes));
  return writers[format as TranscriptFormat](shown, strings, agent);
}

function withoutHidden(message: Message, { thinking, tools }: Exporting["modes"]): Message {
  if (message.role !== "assistant") return message;
  const hidden = { text: false, thinking: thinking === "hidden", tool: tools === "hidden" };
  const blocks = joinedBlocks(message.blocks).filter(({ type }) => !hidden[type]);
  return { ...message, blocks: tools === "titles" ? blocks.map(withoutData) : blocks };
}

function withoutData(block: Block): Block {
  return block.type === "tool" ? { ...block, arguments: "", output: "" } : block;
}

function asMarkdown(messages: readonly Message[], strings: Strings, agent: string): string {
  const texts = messages.map((message) => {
    const { role, at } = message;
    const isOfPage = role === "page";
    const said = role === "user" ? strings.you : strings.agentSaid((isOfPage && message.name) || agent);
    // The agent has not said it: the page has.
    const origin = isOfPage ? ` (${location.hostname})` : "";
    const speaker = `## ${inOneLine(said)}${origin}${at === undefined ? "" : ` ${formatMoment(at, strings.lang)}`}`;
    if (role === "page") return joined([speaker, contained(message.text.trim())]);
    if (role === "user") {
      const files = message.files.map(({ name }) => `- ${inlineCode(name)}`).join("\n");
      return joined([speaker, contained(message.text), files]);
    }
    const failed = message.failure ? quote(failureText(message.failure, strings)) : "";
    return joined([speaker, ...message.blocks.map((block) => blockAsMarkdown(block, strings)), failed]);
  });
  return `${joined(texts)}\n`;
}

function blockAsMarkdown(block: Block, strings: Strings): string {
  if (block.type === "text") return contained(block.text.trim());
  if (block.type === "thinking") return quote(block.text.trim());
  const { arguments: args, output = "", approval } = block;
  const question = contained(approval?.text ?? "");
  return joined([inlineCode(toolName(block, strings)), question, args && codeBlock(args), output && codeBlock(output)]);
}

function quote(text: string): string {
  return contained(text).replace(/^/gm, "> ");
}

function inOneLine(text: string): string {
  return contained(text.replace(/\s+/g, " "));
}

/** What begins a block of code: its indent, or the bullet of its item, the fence, and whatever follows. */
const FENCE = /^( {0,3}(?:(?:[-*+]|\d{1,9}[.)]) {1,4})?)(`{3,}(?=[^`]*$)|~{3,})/;

/** A heading, and a line that makes one of the text above it. */
const HEADING = /^((?: {0,3}(?:>|[-*+]|\d{1,9}[.)]))*[ \t]{0,3})(#{1,4})(?=\s|$)/;
const UNDERLINE = /^([ >\t]*)(?=(?:=+|-+)[ \t]*$)/;

/** Escapes, images and HTML, and these with code and the destinations of links. */
const OPENING = /\\.|!(?=\[)|<(?=[a-z/!?])/gi;
const INLINE = new RegExp(`(?<!\`)(\`+)(?!\`)(?:(.*?)(?<!\`)\\1(?!\`))?|\\][[(]|${OPENING.source}`, "gi");

const escaped = (opening: string) => (/^[\\\]]/.test(opening) ? opening : `\\${opening}`);

/**
 * The Markdown of a message, so that it stays its own: it makes no heading as those of the speakers are, leaves no code open,
 * and loads nothing. An image is a link, and HTML is text. Where code cannot be told from text for sure, it is text.
 */
function contained(text: string): string {
  const lines: string[] = [];
  let fence: { readonly indent: number; readonly mark: string } | undefined;
  /** Whether no code, and no link with marks of code in it, has begun that may end later in the paragraph. */
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
      // In the middle of a paragraph not every number begins an item.
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

function asJson(messages: readonly Message[], strings: Strings): string {
  const entries = messages.map((message) => {
    const { role } = message;
    const at = message.at === undefined ? undefined : new Date(message.at).toISOString();
    if (role === "user") {
      const files = message.files.map(({ name, mediaType, size }) => ({ name, mime_type: mediaType, size }));
      return { role, at, text: message.text, ...(files.length > 0 ? { files } : {}) };
    }
    if (role === "page") return { role, at, name: message.name, text: message.text };
    const { status, finishReason, failure, feedback, blocks } = message;
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
      blocks: blocks.map((block) => blockAsJson(block, strings)),
    };
  });
  return toJson(entries, 2);
}

function blockAsJson(block: Block, strings: Strings): object {
  if (block.type !== "tool") return { type: block.type, text: block.text };
  const { type, tool, arguments: args, status, output, durationMs, approval, decision }: ToolBlock = block;
  const { approved, reason, arguments: changed } = decision ?? {};
  const decided = decision && { approved, reason, arguments: changed };
  const asked = { question: approval?.text, decision: decided };
  const named = { type, tool, title: toolName(block, strings) };
  return { ...named, ...asked, arguments: args, status, output, duration_ms: durationMs };
}
