import { isRecord } from "../../protocol/is-record.ts";
import { text } from "../text.ts";

/**
 * What a message cites but does not name: as Markdown to put after it, "" if there is nothing. OpenAI's
 * models mostly link what they cite in the text itself, which has been streamed by then.
 */
export function missingSources(said: string, content: unknown): string {
  const lines = new Set<string>();
  for (const part of Array.isArray(content) ? content : []) {
    const annotations: unknown = isRecord(part) ? part.annotations : undefined;
    for (const annotation of Array.isArray(annotations) ? annotations : []) {
      if (isRecord(annotation)) lines.add(sourceLine(said, annotation));
    }
  }
  lines.delete("");
  return lines.size === 0 ? "" : `\n\nSources:\n\n${[...lines].join("\n")}`;
}

function sourceLine(said: string, annotation: Readonly<Record<string, unknown>>): string {
  switch (annotation.type) {
    case "url_citation": {
      const url = text(annotation.url);
      if (said.includes(url) || !/^https?:/.test(url) || !URL.canParse(url)) return "";
      return `- [${escaped(text(annotation.title) || url)}](${inLink(url)})`;
    }
    case "file_citation": {
      const name = text(annotation.filename);
      return said.includes(name) ? "" : `- ${escaped(name)}`;
    }
    default:
      return "";
  }
}

function escaped(title: string): string {
  return title.replace(/\s+/g, " ").replace(/[\\`*_[\]<>&~|]/g, "\\$&");
}

/** Parentheses and spaces would end a Markdown link. */
function inLink(url: string): string {
  return new URL(url).href.replace(/[()]/g, (char) => (char === "(" ? "%28" : "%29"));
}
