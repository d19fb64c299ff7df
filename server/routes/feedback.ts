/** `POST /api/feedback`: a user's rating of an answer, for the agent's `onFeedback`. */

import type { Feedback } from "../agent/hooks.ts";
import type { Caller } from "../auth/access.ts";
import type { RequestContext } from "../http/request.ts";
import { ApiError, invalidRequest } from "../protocol/errors.ts";
import { RUN_ID } from "../protocol/events.ts";
import { isRecord } from "../protocol/json.ts";
import { optionalText } from "./parse-approvals.ts";
import { parseJson } from "./parse-json.ts";
import { isGiven, parseMetadata } from "./parse-message.ts";
import type { Service } from "./service.ts";
import { readBody } from "./start-message.ts";

/** Enough even if each character of the longest texts is an escape of six characters. */
const MAX_BYTES = 128 * 1024;

const MAX_REASON_CHARS = 200;
const MAX_COMMENT_CHARS = 4_000;

export const feedback =
  (service: Service) =>
  (context: RequestContext, caller: Caller): Promise<void> =>
    service.runtime.use(async (served) => {
      const { settings, runs } = service;
      const { hooks } = served;
      const { onFeedback } = served.agent.hooks;
      if (onFeedback === undefined || hooks === undefined)
        throw new ApiError("not_found", "This agent takes no feedback: it has no onFeedback.");
      const memory = service.memory.openMessage();
      const parse = async (body: Buffer, { user }: Caller): Promise<Feedback> => {
        return { ...parseFeedback(parseJson(body, settings.maxJsonDepth)), user };
      };
      const rules = { caller, maxBytes: MAX_BYTES, memory };
      const said = await readBody(service, served, context, rules, parse).finally(memory.share());
      if (said === undefined) return;
      runs.refuseWhenDraining();
      const about = { requestId: context.id, runId: said.run };
      if (!hooks.add({ hook: "onFeedback", about, life: served.life, call: () => onFeedback(said) })) {
        const message = "The server has too much feedback to take more at the moment. Please try again.";
        throw new ApiError("overloaded", message, { retryAfter: 10, detail: "the queue of hooks is full" });
      }
      context.res.writeHead(204).end();
    });

/** @throws ApiError `invalid_request` that names the field */
function parseFeedback(body: unknown): Omit<Feedback, "user"> {
  if (!isRecord(body)) throw invalidRequest("", "The feedback must be an object with run and rating.");
  const { rating } = body;
  if (rating !== "up" && rating !== "down" && rating !== null) {
    throw invalidRequest("/rating", 'rating must be "up", "down", or null to take a rating back.');
  }
  if (!isGiven(body.run)) throw invalidRequest("/run", "run is missing. It is the id of the run that gave the answer.");
  return {
    run: idOf(body, "run"),
    conversation: isGiven(body.conversation) ? idOf(body, "conversation") : undefined,
    rating,
    reason: optionalText(body.reason, "/reason", MAX_REASON_CHARS),
    comment: optionalText(body.comment, "/comment", MAX_COMMENT_CHARS),
    metadata: parseMetadata(body.metadata),
  };
}

function idOf(body: Record<string, unknown>, field: "run" | "conversation"): string {
  const value = body[field];
  if (typeof value === "string" && RUN_ID.test(value)) return value;
  throw invalidRequest(`/${field}`, `${field} must be an id of 16 to 64 characters of A-Z, a-z, 0-9, _ and -.`);
}
