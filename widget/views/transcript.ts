import type { TemplateResult } from "lit";
import { guard } from "lit/directives/guard.js";
import type { ChatSession } from "../chat-session.ts";
import type { ViewState } from "../view-state.ts";
import { questionView, replyView } from "./message.ts";

export interface TranscriptModel {
  readonly session: ChatSession;
  readonly agent: string;
  readonly view: ViewState;
}

/** All messages. Those that did not change are not drawn again, however long the conversation is. */
export function transcriptView({ session, agent, view }: TranscriptModel): unknown {
  const { messages } = session;
  const onRetry = () => void session.retry();
  const onRetryAfresh = () => void session.retryAfresh();
  // Messages come and go at the end only, so their places tell them apart.
  return messages.map((message, index) => {
    const last = index === messages.length - 1;
    const draw = (): TemplateResult => {
      if (message.role === "user") return questionView(message);
      // Only the last reply can be asked for again: the others' state is gone.
      return replyView(message, { agent, view, ...(last ? { onRetry, onRetryAfresh } : {}) });
    };
    return guard([message, last, agent, view.version], draw);
  });
}
