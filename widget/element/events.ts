/** The events of `<agent-chat>`. All bubble and cross shadow roots. */

import type { AgentInfo } from "../../server/protocol/chat.ts";
import {
  type AssistantMessage,
  answerText,
  type EndReason,
  type Failure,
  type FailureCode,
  type FeedbackReason,
  type ToolBlock,
} from "../session/messages.ts";
import type * as face from "./public-types.ts";

const ACROSS = { bubbles: true, composed: true };

/** The server has described its agent; the chat can be used. */
export class AgentChatReadyEvent extends Event implements face.AgentChatReadyEvent {
  readonly info: AgentInfo;

  constructor(info: AgentInfo) {
    super("agent-chat-ready", ACROSS);
    this.info = info;
  }
}

/** The person sent a message. */
export class AgentChatMessageEvent extends Event implements face.AgentChatMessageEvent {
  readonly text: string;
  readonly attachmentCount: number;

  constructor(text: string, attachmentCount: number) {
    super("agent-chat-message", ACROSS);
    this.text = text;
    this.attachmentCount = attachmentCount;
  }
}

/** A piece of the answer's text has arrived, as the server sent it. */
export class AgentChatTokenEvent extends Event implements face.AgentChatTokenEvent {
  /**
   * Markdown. The pieces of an answer make its text, unless the server corrects it in the end: `agent-chat-done` has
   * it whole.
   */
  readonly text: string;
  /** Names the answer within its conversation, like that of `agent-chat-feedback`. */
  readonly messageId: string;

  constructor(text: string, messageId: string) {
    super("agent-chat-token", ACROSS);
    this.text = text;
    this.messageId = messageId;
  }
}

/**
 * A tool was called (`status` is `running`), its call needs approval (`waiting`), or is over: `completed`, `failed` or
 * `stopped`.
 */
export class AgentChatToolEvent extends Event implements face.AgentChatToolEvent {
  /** The call's id: the same in both events. */
  readonly callId: string;
  readonly tool: string;
  readonly status: ToolBlock["status"];
  /** JSON, as the model wrote it. */
  readonly arguments: string;
  /** Absent while the call runs, and when it was stopped. */
  readonly output: string | undefined;
  /** Present where the call needs approval. */
  readonly approval: ToolBlock["approval"];

  constructor(call: ToolBlock) {
    super("agent-chat-tool", ACROSS);
    this.callId = call.callId;
    this.tool = call.tool;
    this.status = call.status;
    this.arguments = call.arguments;
    this.output = call.output;
    this.approval = call.approval;
  }
}

/** An answer ended; `finishReason` is `stopped` when the person stopped it. */
export class AgentChatDoneEvent extends Event implements face.AgentChatDoneEvent {
  readonly text: string;
  readonly finishReason: EndReason;

  constructor(text: string, finishReason: EndReason) {
    super("agent-chat-done", ACROSS);
    this.text = text;
    this.finishReason = finishReason;
  }
}

/** An answer failed. */
export class AgentChatErrorEvent extends Event implements face.AgentChatErrorEvent {
  readonly code: FailureCode;
  readonly message: string;
  /** What the server's log calls the run (`run_id`); absent when the server did not answer. */
  readonly reference: string | undefined;

  /** `message` says in the element's language what has failed. */
  constructor({ code, reference }: Failure, message: string) {
    super("agent-chat-error", ACROSS);
    this.code = code;
    this.message = message;
    this.reference = reference;
  }
}

/** The person rated an answer, said why, or took the rating back. The last event about an answer counts. */
export class AgentChatFeedbackEvent extends Event implements face.AgentChatFeedbackEvent {
  /** Names the answer within its conversation, also after a reload. */
  readonly messageId: string;
  /** `null` when the person took the rating back. */
  readonly rating: "up" | "down" | null;
  /** Only with `down`, in the second event about it, and only if the person chose one. */
  readonly reason: FeedbackReason | undefined;
  /** The person's own words, if any: at most 2,000 characters. */
  readonly comment: string | undefined;
  /** The answer, as Markdown. */
  readonly answer: string;

  constructor(message: AssistantMessage) {
    super("agent-chat-feedback", ACROSS);
    const { id, feedback } = message;
    this.messageId = id;
    this.rating = feedback?.rating ?? null;
    this.reason = feedback?.reason;
    this.comment = feedback?.comment;
    this.answer = answerText(message);
  }
}
