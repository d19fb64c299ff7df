import type { TemplateResult } from "lit";
import { guard } from "lit/directives/guard.js";
import { repeat } from "lit/directives/repeat.js";
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
  return repeat(
    messages,
    ({ id }) => id,
    (message, index) => {
      const last = index === messages.length - 1;
      return guard([message, last, agent, view.version], (): TemplateResult => {
        if (message.role === "user") return questionView(message);
        // Only the last reply can be asked for again: the others' state is gone.
        return replyView(message, { agent, view, ...(last ? { onRetry, onRetryAfresh } : {}) });
      });
    },
  );
}
