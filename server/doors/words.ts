/** Texts in English for the clients of doors, which support neither languages nor approvals. */

import type { ToolText } from "../protocol/chat.ts";
import type { DoneEvent } from "../protocol/events.ts";

/** A title of a tool, in English if there is one. */
export function inEnglish(text: ToolText): string {
  return typeof text === "string" ? text : (text.en ?? Object.values(text)[0] ?? "");
}

const NOT_DONE = "It was not done: a person has to approve it, which is not possible here.";

/** The approvals and questions that `said` lacks and, for approvals, a note: doors accept no decisions. */
export function waitingWords({ approvals = [] }: DoneEvent, said = ""): string[] {
  const texts = approvals.map(({ text }) => text).filter((text) => !said.includes(text));
  const isToApprove = approvals.some(({ question }) => question !== true);
  return isToApprove ? [...texts, NOT_DONE] : texts;
}
