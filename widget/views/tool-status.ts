import { strings } from "../strings.ts";
import type { ToolBlock } from "../transcript.ts";

const LABELS = {
  running: "toolRunning",
  completed: "toolCompleted",
  failed: "toolFailed",
  stopped: "toolStopped",
} as const;

/** The status of a tool call in words. */
export function toolStatus(status: ToolBlock["status"]): string {
  return strings[LABELS[status]];
}
