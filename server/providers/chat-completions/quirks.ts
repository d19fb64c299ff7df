/** What a server does not take, learned from the sentences with which it refuses requests. */

import { isRecord, records } from "../../protocol/json.ts";
import { blamesParameter, type UpstreamRefusal } from "../failures.ts";
import type { ChatDialect, HistoryQuirks, SettingQuirks } from "./dialect.ts";
import type { SentMessage } from "./messages.ts";

/** Everything learned that shapes one request. */
export interface RequestQuirks {
  readonly settings: SettingQuirks;
  readonly history: HistoryQuirks;
}

export const NO_SETTING_QUIRKS: SettingQuirks = {
  usage: true,
  thoughts: true,
  maxTokens: "max_tokens",
};

export const NO_HISTORY_QUIRKS: HistoryQuirks = {
  refused: new Set(),
  dropsSigned: false,
  wantsReasoning: false,
  shortIds: false,
  closesTools: false,
};

/** A request that was refused, and what shaped it. */
export interface RefusedRequest extends RequestQuirks {
  dialect: ChatDialect;
  body: { messages: readonly SentMessage[] };
}

/** What one refusal teaches: at most one of the two. */
export interface LearnedQuirks {
  settings?: Partial<SettingQuirks>;
  history?: Partial<HistoryQuirks>;
}

/**
 * What the refusal teaches beyond what the request already heeded, so that another try makes sense;
 * `undefined` when it teaches nothing.
 */
export function learn(refusal: UpstreamRefusal, request: RefusedRequest): LearnedQuirks | undefined {
  const settings = learnSettings(refusal, request);
  if (settings !== undefined) return { settings };
  const history = learnHistory(refusal, request);
  return history === undefined ? undefined : { history };
}

function learnSettings(
  refusal: UpstreamRefusal,
  { dialect, settings, body }: RefusedRequest,
): Partial<SettingQuirks> | undefined {
  if (settings.usage && blamesParameter(refusal, "stream_options")) return { usage: false };
  if (settings.thoughts && dialect.thoughtsRefused?.test(refusal.detail.text)) {
    return { thoughts: false };
  }
  if ("max_tokens" in body && /\bmax_completion_tokens\b/.test(refusal.detail.text)) {
    return { maxTokens: "max_completion_tokens" };
  }
  return undefined;
}

function learnHistory(
  // Some servers put the sentence into fields of their own: the whole body is searched.
  { body: said }: UpstreamRefusal,
  { history, body }: RefusedRequest,
): Partial<HistoryQuirks> | undefined {
  if (!history.wantsReasoning && /reasoning_content\b.{0,80}must be passed back/is.test(said)) {
    return { wantsReasoning: true };
  }
  if (!history.shortIds && /tool.?call.?id\b.{0,200}(?:length|too long|must)/is.test(said)) {
    return { shortIds: true };
  }
  if (!history.closesTools && /role '?"?user'?"? after role '?"?tool/i.test(said)) {
    return { closesTools: true };
  }
  if (!history.dropsSigned && /invalid\W{0,3}signature/i.test(said)) return { dropsSigned: true };
  const words = new Set(said.split(/\W+/));
  const heeded = new Set([...history.refused, ...(history.wantsReasoning ? [REASONING] : [])]);
  const blamed = extraFields(body.messages).filter((name) => words.has(name) && !heeded.has(name));
  return blamed.length === 0 ? undefined : { refused: new Set([...history.refused, ...blamed]) };
}

const REASONING = "reasoning_content";

const MESSAGE_FIELDS = new Set(["role", "content", "tool_calls"]);
const CALL_FIELDS = new Set(["id", "type", "function"]);
const FUNCTION_FIELDS = new Set(["name", "arguments"]);

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
