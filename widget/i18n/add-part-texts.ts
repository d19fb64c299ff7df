/**
 * Adds the texts of lazy parts. Imported by every file that uses one of them, so that they are there before it draws;
 * also loaded for a failure that one of them explains.
 */

import type { FinishReason } from "../../server/protocol/chat.ts";
import type { Refusal } from "../conversations/messages.ts";
import { panelTexts } from "./panel-texts.ts";
import { partTexts } from "./part-texts.ts";
import { en, endNotes, failures, type TextName } from "./strings.ts";

/** Texts of the failures that are not in `strings.ts`. */
const others: Record<Exclude<Refusal["code"], keyof typeof failures>, TextName> = {
  login_required: "signInNeeded",
  unauthorized: "siteKeyRefused",
  forbidden: "siteForbidden",
  user_unknown: "userUnknown",
  request_too_large: "requestTooLarge",
  attachment_too_large: "requestTooLarge",
  rate_limited: "rateLimited",
  invalid_request: "messageRefused",
  invalid_json: "messageRefused",
  invalid_attachment: "messageRefused",
  unsupported_attachment: "messageRefused",
  unsupported_media_type: "messageRefused",
  content_filtered: "messageFiltered",
  context_too_long: "conversationTooLong",
  conversation_expired: "conversationUnknown",
  invalid_state: "conversationUnknown",
  request_timeout: "tookTooLong",
  provider_timeout: "tookTooLong",
  provider_truncated: "brokenOff",
  run_lost: "brokenOff",
  approval_used: "approvalUsed",
  approval_expired: "approvalExpired",
  provider_auth: "ownerNeeded",
  provider_rate_limited: "overloaded",
  provider_overloaded: "overloaded",
  overloaded: "overloaded",
  shutting_down: "overloaded",
  run_in_progress: "overloaded",
  provider_error: "serverError",
  internal: "serverError",
  not_found: "serverError",
  method_not_allowed: "serverError",
};

/** Notes below answers that were cut off. */
const cuts: Record<Exclude<FinishReason, keyof typeof endNotes>, TextName> = {
  length: "stoppedAtLengthLimit",
  content_filter: "stoppedByFilter",
  max_turns: "stoppedAtTurnLimit",
};

Object.assign(en, partTexts, panelTexts);
Object.assign(failures, others);
Object.assign(endNotes, cuts);
