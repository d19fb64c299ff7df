import { failureText } from "../../i18n/strings.ts";
import type { AssistantMessage, Message, ToolBlock } from "../../session/messages.ts";
import type { ChatContext } from "../chat-part.ts";
import { toolStatus } from "../tool-call.ts";
import { type Announcer, spokenTexts } from "./announcer.ts";

export interface AnswerAnnouncerOptions {
  readonly announcer: Announcer;
  readonly context: () => ChatContext;
  /** Resolves to the message as it is drawn, once it is. */
  readonly drawn: (message: AssistantMessage) => Promise<ParentNode | undefined>;
}

/** Says what happens in an answer: that it begins, each tool call, and at its end all of its text. */
export class AnswerAnnouncer {
  readonly #options: AnswerAnnouncerOptions;
  /** Id of the answer that is coming. */
  #current: string | undefined;
  /** The states of its tool calls that have been said, or were known before: id and status. */
  readonly #said = new Set<string>();

  constructor(options: AnswerAnnouncerOptions) {
    this.#options = options;
  }

  /** To be called after every change of the messages. */
  watch(messages: readonly Message[]): void {
    const last = messages.at(-1);
    const answer = last?.role === "assistant" ? last : undefined;
    if (answer?.status === "streaming") this.#follow(answer);
    else {
      if (answer && answer.id === this.#current) void this.#end(answer);
      this.#current = undefined;
    }
  }

  #follow(answer: AssistantMessage): void {
    const { announcer, context } = this.#options;
    const { strings, modes } = context();
    if (this.#current !== answer.id) {
      this.#current = answer.id;
      this.#said.clear();
      // After a reload, an earlier page has said these.
      for (const call of toolCalls(answer)) this.#said.add(newsOf(call));
      announcer.say(strings.answering);
      return;
    }
    for (const call of toolCalls(answer)) {
      if (this.#said.has(newsOf(call))) continue;
      this.#said.add(newsOf(call));
      if (modes.tools === "hidden") continue;
      const { tool, status } = call;
      announcer.say(status === "running" ? strings.toolStarted(tool) : `${tool}: ${toolStatus(status, strings)}`);
    }
  }

  async #end(answer: AssistantMessage): Promise<void> {
    const { announcer, context, drawn } = this.#options;
    if (answer.failure) {
      announcer.interrupt(failureText(answer.failure, context().strings));
      return;
    }
    // Spoken as it is drawn: without the marks of Markdown.
    const message = await drawn(answer);
    if (message) announcer.say(...spokenTexts(message.querySelectorAll(".markdown, .note")));
  }
}

function toolCalls({ blocks }: AssistantMessage): ToolBlock[] {
  return blocks.filter((block) => block.type === "tool");
}

function newsOf({ callId, status }: ToolBlock): string {
  return `${callId} ${status}`;
}
