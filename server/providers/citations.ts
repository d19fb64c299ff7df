/** Reads the sources of an answer, and their positions in its text, from the forms of APIs and frameworks. */

import type { HistoryMessage, HistoryToolCall } from "../protocol/chat.ts";
import { asString, isRecord, type Json, records } from "../protocol/json.ts";
import type { ResultSource } from "../protocol/sources.ts";
import { callsOf } from "./history.ts";
import type { FoundSource, ModelEvent } from "./provider.ts";

export function sourceEvents(sources: readonly FoundSource[]): ModelEvent[] {
  return sources.map((source) => ({ type: "source", source }));
}

/** A source from the field names that most APIs and frameworks share. */
export function plainSource(fields: Json): FoundSource {
  const { source, url = source, title, document_title, filename = document_title ?? title } = fields;
  return { title: asString(title), url: asString(url), file: asString(filename), quote: asString(fields.cited_text) };
}

/**
 * The sources in the annotations of an OpenAI text, which `after` more characters follow. Chat Completions nests their
 * fields under the name of the type. Positions are at the end of what they mark and count code points, as in Python.
 */
export function openAiSources(annotations: unknown, text: string, after = 0): FoundSource[] {
  return records(annotations).flatMap((annotation) => {
    const { type } = annotation;
    if (type !== "url_citation" && type !== "file_citation") return [];
    const fields = isRecord(annotation[type]) ? annotation[type] : annotation;
    const { end_index: end, index = end } = fields;
    const left = typeof index === "number" ? text.length - unitsOfPoints(text, index) : undefined;
    return [{ ...plainSource(fields), back: left === undefined ? undefined : Math.max(0, left) + after }];
  });
}

/** The sources of a whole message whose text is in `said`, perhaps with more text after it. */
export function messageSources(content: unknown, said: string): FoundSource[] {
  return records(content).flatMap(({ text: given, annotations, providerData }) => {
    const text = asString(given);
    const beside = isRecord(providerData) ? providerData.annotations : undefined;
    const start = said.lastIndexOf(text);
    const sources = openAiSources(annotations ?? beside, text, said.length - start - text.length);
    return start === -1 ? sources.map((source) => ({ ...source, back: undefined })) : sources;
  });
}

/** A source of a tool's result in the history, and the call that returned it. */
export type GivenSource = ResultSource & { call: HistoryToolCall | undefined };

/** The sources of all results, in the order in which Claude gets them as search results. */
export function givenSources(history: readonly HistoryMessage[]): GivenSource[] {
  const calls = new Map<string, HistoryToolCall>();
  return history.flatMap((message) => {
    for (const call of callsOf([message])) calls.set(call.id, call);
    if (message.role !== "tool" || message.is_error) return [];
    return (message.sources ?? []).map((source) => ({ ...source, call: calls.get(message.tool_call_id) }));
  });
}

/** The source of a citation by Claude: a page that it found, a search result in `given`, or a document. */
export function claudeSource(citation: Json, given: readonly GivenSource[]): FoundSource {
  const { call, url, title } = given[Number(citation.search_result_index)] ?? {};
  const found = plainSource(citation);
  return title === undefined ? found : { ...found, title, url, file: title, call };
}

/** The sources of a Gemini answer, in the field names of Gemini or Chat Completions. Positions count UTF-8 bytes. */
export function geminiSources(grounding: Json, text: string): FoundSource[] {
  const chunks = records(grounding.groundingChunks ?? grounding.grounding_chunks).map((chunk) => {
    const fields = chunk.web ?? chunk.retrievedContext ?? chunk.retrieved_context ?? chunk.maps;
    const { uri: url, title, text: cited_text } = isRecord(fields) ? fields : {};
    return plainSource({ url, title, cited_text });
  });
  const supports = records(grounding.groundingSupports ?? grounding.grounding_supports);
  if (supports.length === 0) return chunks;
  const bytes = Buffer.from(text);
  return supports.flatMap(({ segment, ...support }) => {
    const { endIndex, end_index: end = endIndex }: Json = isRecord(segment) ? segment : {};
    const back = typeof end === "number" ? text.length - bytes.toString("utf8", 0, end).length : undefined;
    const indices = [support.groundingChunkIndices ?? support.grounding_chunk_indices ?? []].flat();
    return indices.flatMap((index) => {
      const chunk = chunks[Number(index)];
      return chunk === undefined ? [] : [{ ...chunk, back }];
    });
  });
}

/** The number of UTF-16 units in the first `points` code points of a text. */
function unitsOfPoints(text: string, points: number): number {
  if (!/[\uD800-\uDFFF]/.test(text)) return points;
  let [units, left] = [0, points];
  for (const char of text) {
    if (left-- <= 0) break;
    units += char.length;
  }
  return units;
}
