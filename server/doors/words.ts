/** What doors say in plain English, to clients that know neither languages nor approvals. */

import type { ToolText } from "../protocol/chat.ts";
import type { DoneEvent } from "../protocol/events.ts";

/** A name of a tool as people read it. */
export function inEnglish(text: ToolText): string {
  return typeof text === "string" ? text : (text.en ?? Object.values(text)[0] ?? "");
}

const NOT_DONE = "It was not done: a person has to approve it, which is not possible here.";

/** What waits for a person, where `said` does not say it, and that it was not done: no decision can come by a door. */
export function waitingWords({ approvals = [] }: DoneEvent, said = ""): string[] {
  const texts = approvals.map(({ text }) => text).filter((text) => !said.includes(text));
  const isToApprove = approvals.some(({ question }) => question !== true);
  return isToApprove ? [...texts, NOT_DONE] : texts;
}
