/** Texts about tool calls for people: the name, and the status. */

import "../i18n/add-part-texts.ts";
import type { ToolBlock, ToolStatus } from "../conversations/messages.ts";
import type { Strings, TextName } from "../i18n/strings.ts";
import type { TranscriptBlock } from "./block-module.ts";
import type { ChatModes } from "./context.ts";

const TOOL_STATUSES = {
  running: "toolRunning",
  completed: "toolCompleted",
  failed: "toolFailed",
  stopped: "toolStopped",
  waiting: "toolWaiting",
} as const satisfies Record<ToolStatus, TextName>;

/** The title of a call by the tool's author, in the user's language, or else the tool's name in words. */
export function toolName({ tool, title, status }: ToolBlock, { lang }: Strings): string {
  const words = tool.replace(/[_-]+/g, " ");
  if (!title) return words[0]?.toUpperCase() + words.slice(1);
  const [language = ""] = lang.split("-");
  const text =
    typeof title === "string" ? title : (title[lang] ?? title[language] ?? title.en ?? Object.values(title)[0]);
  return text + (status === "running" ? "…" : "");
}

/** The status of a tool call in words. */
export function toolStatusText(status: ToolStatus, strings: Strings): string {
  return strings[TOOL_STATUSES[status]];
}

/** A call in a transcript. */
export function transcribeCall(call: ToolBlock, strings: Strings, modes: ChatModes): TranscriptBlock {
  const { type, tool, status, durationMs, approval, decision } = call;
  const steps = call.steps?.map((step) => transcribeCall(step, strings, modes));
  const [input, output] = modes.tools === "titles" ? ["", ""] : [call.arguments, call.output];
  const title = toolName(call, strings);
  const pictures = (call.images?.length ?? 0) + (call.imagesOmitted ?? 0);
  const { approved, reason, arguments: changed } = decision ?? {};
  const decided = decision && { approved, reason, arguments: changed };
  const asked = { question: approval?.text, decision: decided };
  return {
    parts: [
      ["name", title],
      ["text", approval?.text ?? ""],
      ["data", input],
      ["data", output ?? ""],
      ["text", pictures > 0 && modes.tools !== "titles" ? strings.picturesNotHere(pictures) : ""],
      ...(steps ?? []).flatMap(({ parts }) => parts),
    ],
    json: {
      ...{ type, tool, title, ...asked, arguments: input, status, output, duration_ms: durationMs },
      ...(pictures > 0 && { pictures }),
      steps: steps?.map(({ json }) => json),
    },
  };
}
