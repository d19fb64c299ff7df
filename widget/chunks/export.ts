/** A conversation as a text. A chunk: it is loaded when a page asks for one. */

import type { Block, Message, ToolBlock } from "../transcript.ts";

const writers = { markdown: asMarkdown, json: asJson };

/**
 * Writes messages down. `names` are what stands before those of the person and of the agent. Throws a `TypeError` for a
 * format that is neither `markdown` nor `json`.
 */
export function exportTranscript(
  format: string,
  messages: readonly Message[],
  names: readonly [you: string, agent: string],
): string {
  if (!Object.hasOwn(writers, format)) {
    throw new TypeError(`exportTranscript: format must be markdown or json, not "${format}"`);
  }
  return writers[format as keyof typeof writers](messages, names);
}

function asMarkdown(messages: readonly Message[], [you, agent]: readonly [you: string, agent: string]): string {
  const texts = messages.map((message) => {
    if (message.role === "user") {
      const files = message.files.map(({ name }) => `- ${fenced(name)}`).join("\n");
      return joined([`**${you}**`, message.text, files]);
    }
    const failure = message.failure ? `> ${message.failure.message}` : "";
    return joined([`**${agent}**`, ...message.blocks.map(blockAsMarkdown), failure]);
  });
  return `${joined(texts)}\n`;
}

function blockAsMarkdown(block: Block): string {
  if (block.type === "text") return block.text.trim();
  if (block.type === "thinking") return block.text.trim().replace(/^/gm, "> ");
  const { tool, arguments: args, output = "" } = block;
  return joined([fenced(tool), args && codeBlock(args), output && codeBlock(output)]);
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

function fenced(text: string): string {
  const fence = fenceFor(text, 1);
  const gap = /^`|`$/.test(text) ? " " : "";
  return `${fence}${gap}${text.replace(/\s+/g, " ")}${gap}${fence}`;
}

function asJson(messages: readonly Message[]): string {
  const entries = messages.map((message) => {
    const { role } = message;
    if (role === "user") {
      const files = message.files.map(({ name, mediaType, size }) => ({
        name,
        mime_type: mediaType,
        size,
      }));
      return { role, text: message.text, ...(files.length > 0 ? { files } : {}) };
    }
    const { status, finishReason, failure, feedback, blocks } = message;
    const error = failure && {
      code: failure.code,
      message: failure.message,
      reference: failure.reference,
    };
    const steps = blocks.map(blockAsJson);
    return { role, status, finish_reason: finishReason, error, feedback, blocks: steps };
  });
  return JSON.stringify(entries, null, 2);
}

function blockAsJson(block: Block): object {
  if (block.type !== "tool") return { type: block.type, text: block.text };
  const { type, tool, arguments: args, status, output, durationMs }: ToolBlock = block;
  return { type, tool, arguments: args, status, output, duration_ms: durationMs };
}
