/** A conversation as a text. */

import { toJson } from "../../server/protocol/json.ts";
import type { Block, Failure, Message, ToolBlock } from "./messages.ts";

/** `markdown` is to be read, `json` for programs. */
export type TranscriptFormat = "markdown" | "json";

/** The words around the messages. */
export interface TranscriptTexts {
  /** Stands before the messages of the person. */
  readonly you: string;
  /** Stands before the answers. */
  readonly agent: string;
  readonly failure: (failure: Failure) => string;
}

const writers = { markdown: asMarkdown, json: asJson };

/** How steps are shown: what is `hidden` is not exported. */
export interface StepModes {
  readonly thinking: string;
  readonly tools: string;
}

/** Throws a `TypeError` for a format that is neither `markdown` nor `json`. */
export function exportTranscript(
  format: string,
  messages: readonly Message[],
  modes: StepModes,
  texts: TranscriptTexts,
): string {
  if (!Object.hasOwn(writers, format)) {
    throw new TypeError(`exportTranscript: format must be markdown or json, not "${format}"`);
  }
  const shown = messages.map((message) => withoutHidden(message, modes));
  return writers[format as TranscriptFormat](shown, texts);
}

function withoutHidden(message: Message, { thinking, tools }: StepModes): Message {
  if (message.role === "user") return message;
  const hidden = { text: false, thinking: thinking === "hidden", tool: tools === "hidden" };
  return { ...message, blocks: message.blocks.filter(({ type }) => !hidden[type]) };
}

function asMarkdown(messages: readonly Message[], { you, agent, failure }: TranscriptTexts): string {
  const texts = messages.map((message) => {
    if (message.role === "user") {
      const files = message.files.map(({ name }) => `- ${inlineCode(name)}`).join("\n");
      return joined([`**${you}**`, message.text, files]);
    }
    const failed = message.failure ? `> ${failure(message.failure)}` : "";
    return joined([`**${agent}**`, ...message.blocks.map(blockAsMarkdown), failed]);
  });
  return `${joined(texts)}\n`;
}

function blockAsMarkdown(block: Block): string {
  if (block.type === "text") return block.text.trim();
  if (block.type === "thinking") return block.text.trim().replace(/^/gm, "> ");
  const { tool, arguments: args, output = "" } = block;
  return joined([inlineCode(tool), args && codeBlock(args), output && codeBlock(output)]);
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

function asJson(messages: readonly Message[], texts: TranscriptTexts): string {
  const entries = messages.map((message) => {
    const { role } = message;
    if (role === "user") {
      const files = message.files.map(({ name, mediaType, size }) => ({ name, mime_type: mediaType, size }));
      return { role, text: message.text, ...(files.length > 0 ? { files } : {}) };
    }
    const { status, finishReason, failure, feedback, blocks } = message;
    const error = failure && { code: failure.code, message: texts.failure(failure), reference: failure.reference };
    return { role, status, finish_reason: finishReason, error, feedback, blocks: blocks.map(blockAsJson) };
  });
  return toJson(entries, 2);
}

function blockAsJson(block: Block): object {
  if (block.type !== "tool") return { type: block.type, text: block.text };
  const { type, tool, arguments: args, status, output, durationMs }: ToolBlock = block;
  return { type, tool, arguments: args, status, output, duration_ms: durationMs };
}
