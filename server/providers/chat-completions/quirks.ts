/** What a server does not take, learned from the sentences with which it refuses requests. */

import type { HistoryMessage } from "../../protocol/chat.ts";
import { isRecord, records } from "../../protocol/json.ts";
import { CALL_FIELDS, FUNCTION_FIELDS } from "../extra-fields.ts";
import { blamesParameter, type UpstreamRefusal } from "../failures.ts";
import { mayBeQuoted } from "../history.ts";
import type { ChatDialect, Quirks, SettingQuirks } from "./dialect.ts";
import type { SentMessage } from "./messages.ts";

/** The quirks of a server that takes all that OpenAI's takes: none. */
export const NO_QUIRKS: Quirks = {
  usage: true,
  thoughts: true,
  maxTokens: "max_tokens",
  refused: new Set(),
  dropsSigned: false,
  wantsReasoning: false,
  shortIds: false,
  closesTools: false,
};

/** What a refusal teaches of the server, beyond what the request already heeded; `undefined`: nothing. */
export function learnSetting(
  refusal: UpstreamRefusal,
  quirks: Quirks,
  body: object,
  { thoughtsRefused }: ChatDialect,
): Partial<SettingQuirks> | undefined {
  const { text } = refusal.detail;
  if (quirks.usage && blamesParameter(refusal, "stream_options")) return { usage: false };
  if (quirks.thoughts && thoughtsRefused?.test(text)) return { thoughts: false };
  if ("max_tokens" in body && /\bmax_completion_tokens\b/.test(text)) return { maxTokens: "max_completion_tokens" };
  return undefined;
}

/** Words of refusals that each of the settings is learned from. */
const SETTING_WORDS: Record<keyof SettingQuirks, RegExp> = {
  usage: /stream_options/i,
  thoughts: /thinking|thought/i,
  maxTokens: /max_completion_tokens/i,
};

/**
 * What may be heeded for all conversations. A refusal may quote the conversation that was sent: where that has the words, they
 * prove nothing of the server.
 */
export function provenSettings(
  learned: Partial<SettingQuirks>,
  history: readonly HistoryMessage[],
): Partial<SettingQuirks> {
  const proven = Object.entries(learned).filter(
    ([name]) => !mayBeQuoted(SETTING_WORDS[name as keyof SettingQuirks], history),
  );
  return Object.fromEntries(proven);
}

/** What a refusal teaches of the conversation that was sent, beyond what the request already heeded; `undefined`: nothing. */
export function learnHistory(
  // Some servers put the sentence into fields of their own: the whole body is searched.
  { body: said }: UpstreamRefusal,
  quirks: Quirks,
  messages: readonly SentMessage[],
): Partial<Quirks> | undefined {
  if (!quirks.wantsReasoning && /reasoning_content\b.{0,80}must be passed back/is.test(said)) {
    return { wantsReasoning: true };
  }
  if (!quirks.shortIds && /tool.?call.?id\b.{0,200}(?:length|too long|must)/is.test(said)) return { shortIds: true };
  if (!quirks.closesTools && /role '?"?user'?"? after role '?"?tool/i.test(said)) return { closesTools: true };
  if (!quirks.dropsSigned && /invalid\W{0,3}signature/i.test(said)) return { dropsSigned: true };
  const words = new Set(said.split(/\W+/));
  const heeded = new Set([...quirks.refused, ...(quirks.wantsReasoning ? ["reasoning_content"] : [])]);
  const blamed = extraFields(messages).filter((name) => words.has(name) && !heeded.has(name));
  return blamed.length === 0 ? undefined : { refused: new Set([...quirks.refused, ...blamed]) };
}

const MESSAGE_FIELDS = new Set(["role", "content", "tool_calls"]);

/** Names of what went back beyond the API's own fields. */
function extraFields(messages: readonly SentMessage[]): string[] {
  const answers = messages.filter(({ role }) => role === "assistant");
  const calls = answers.flatMap((answer) => records(answer.tool_calls));
  const functions = calls.flatMap((call) => (isRecord(call.function) ? [call.function] : []));
  const beyond = (fields: readonly object[], known: ReadonlySet<string>) =>
    fields.flatMap(Object.keys).filter((name) => !known.has(name));
  const names = [
    ...beyond(answers, MESSAGE_FIELDS),
    ...beyond(calls, CALL_FIELDS),
    ...beyond(functions, FUNCTION_FIELDS),
  ];
  return [...new Set(names)];
}
