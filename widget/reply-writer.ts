/** Writes what a run brings into the last reply of a conversation. */

import type { ErrorEvent } from "../server/protocol/events.ts";
import { type CarriedRun, isForgotten } from "./carried-run.ts";
import type { Conversation } from "./conversation.ts";
import type { SessionOptions } from "./session-options.ts";
import { strings } from "./strings.ts";
import { applyEvent, failReply, type Reply, stopReply } from "./transcript.ts";
import type { RunEvent } from "./transport/transport.ts";

export class ReplyWriter {
  readonly #conversation: Conversation;
  readonly #options: SessionOptions;

  constructor(conversation: Conversation, options: SessionOptions) {
    this.#conversation = conversation;
    this.#options = options;
  }

  /** Whether the run goes on being followed; it does not while a key is asked for. */
  write(event: RunEvent, run: CarriedRun): boolean {
    const shown = event.type === "error" ? this.#judge(event) : event;
    if (!shown) {
      if (run.position.after === 0) this.#conversation.dropReply();
      return false;
    }
    if ((event.type === "done" || event.type === "error") && event.state) {
      this.#conversation.advance(event.state);
    }
    this.#change((reply) => applyEvent(reply, shown, Date.now(), run.reference));
    const { id = "" } = this.#conversation.lastReply ?? {};
    if (shown.type === "token") this.#options.onToken(shown.data, id);
    return true;
  }

  /** Ends a reply that no terminal event has ended: the run was stopped, or what came cannot be read. */
  end(isUnreadable = false): void {
    const failure = { code: "unreadable", message: strings.unreadable, retryable: true } as const;
    this.#change((reply) => {
      if (reply.status !== "streaming") return reply;
      const now = Date.now();
      return isUnreadable ? failReply(reply, failure, now) : stopReply(reply, now);
    });
  }

  #judge(event: ErrorEvent): ErrorEvent | undefined {
    if (!isForgotten(event)) return this.#options.judgeError(event);
    return { ...event, data: strings.connectionLost, retryable: true };
  }

  #change(change: (reply: Reply) => Reply): void {
    this.#conversation.changeReply(change);
    this.#options.onChange();
  }
}
