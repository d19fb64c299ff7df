/** The one `done` or `error` that ends a run. */

import { toApiError } from "../protocol/api-error.ts";
import type { FinishReason } from "../protocol/chat.ts";
import type { DoneEvent, ErrorEvent, TokenEvent } from "../protocol/events.ts";
import type { Conversation } from "../providers/provider.ts";
import { abortKind } from "./run-abort.ts";
import type { Progress, Runner, RunRequest } from "./runner.ts";
import { sealState } from "./state.ts";

/** Said in place of an empty answer, which would look like a fault. */
export const NOTHING_SAID: Record<Exclude<FinishReason, "stop" | "stopped">, string> = {
  length: "The answer was cut by the token limit before it began.",
  content_filter: "The model's provider withheld this answer.",
  max_turns: "I stopped here: this took more steps than I may take for one message.",
};

/** Ends a run that reached an end of its own. */
export function finish(
  runner: Runner,
  conversation: Conversation,
  progress: Progress,
  said: string,
  reason: Exclude<FinishReason, "stopped">,
): (TokenEvent | DoneEvent)[] {
  if (reason === "stop" || said.trim() !== "") {
    return [done(runner, conversation, progress, said, reason)];
  }
  const output = NOTHING_SAID[reason];
  // A client that only gathers tokens reads the same text as one that reads `done`.
  const token: TokenEvent = { type: "token", data: output };
  return [token, done(runner, conversation, progress, output, reason)];
}

function done(
  runner: Runner,
  conversation: Conversation,
  { usage, model }: Progress,
  output: string,
  reason: FinishReason,
): DoneEvent {
  return {
    type: "done",
    data: output,
    state: sealState(conversation.state(), runner.state()),
    ...(usage === undefined ? {} : { usage }),
    finish_reason: reason,
    ...(model === undefined ? {} : { model }),
  };
}

/** Ends a run that was aborted, as the kind of the abort says; `undefined`: without a word. */
export function cutShort(
  runner: Runner,
  request: RunRequest,
  conversation: Conversation,
  progress: Progress,
  signal: AbortSignal,
): DoneEvent | ErrorEvent | undefined {
  switch (abortKind(signal)) {
    case "gone":
      return undefined;
    case "stopped":
      conversation.interrupt(progress.unfinished);
      return done(runner, conversation, progress, progress.said, "stopped");
    case "revoked":
      return {
        ...errorEvent(runner, request, "unauthorized", "This key may no longer be used."),
        retryable: false,
      };
    case "shutting_down":
      return {
        ...errorEvent(runner, request, "shutting_down", "The server is stopping. Please try again."),
        retry_after: 1,
      };
    case "timeout":
      return errorEvent(
        runner,
        request,
        "provider_timeout",
        `The answer took longer than ${runner.maxRunMs / 1000} seconds and was ended.`,
      );
  }
}

/** Ends a run that failed. */
export function failed(runner: Runner, request: RunRequest, error: unknown): ErrorEvent {
  const { code, message, retryable, retryAfter } = toApiError(error);
  return {
    ...errorEvent(runner, request, code, message),
    retryable,
    ...(retryAfter === undefined ? {} : { retry_after: retryAfter }),
  };
}

/** The last good state is the one that the message came with: the message can be sent again as it is. */
function errorEvent(runner: Runner, request: RunRequest, code: ErrorEvent["code"], message: string): ErrorEvent {
  const hasState = Object.keys(request.state).length > 0;
  return {
    type: "error",
    data: message,
    code,
    retryable: true,
    ...(hasState ? { state: sealState(request.state, runner.state()) } : {}),
  };
}
