import { failureText, toolStatusText } from "../../i18n/strings.ts";
import type { AssistantMessage, Message, ToolBlock } from "../../session/messages.ts";
import type { ChatContext } from "../context.ts";
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
  /** The answer that is coming, as it was seen last. */
  #current: AssistantMessage | undefined;

  constructor(options: AnswerAnnouncerOptions) {
    this.#options = options;
  }

  /** To be called after every change of the messages. */
  watch(messages: readonly Message[]): void {
    const last = messages.at(-1);
    const answer = last?.role === "assistant" ? last : undefined;
    if (answer?.status === "streaming") this.#follow(answer);
    else {
      if (answer && answer.id === this.#current?.id) void this.#end(answer);
      this.#current = undefined;
    }
  }

  #follow(answer: AssistantMessage): void {
    const { announcer, context } = this.#options;
    const { strings, modes } = context();
    const before = this.#current;
    this.#current = answer;
    if (before?.id !== answer.id) {
      announcer.say(strings.answering);
      return;
    }
    const known = toolCalls(before);
    for (const { callId, tool, status } of toolCalls(answer)) {
      const isSaid = known.some((call) => call.callId === callId && call.status === status);
      if (isSaid || (modes.tools === "hidden" && status !== "waiting")) continue;
      announcer.say(status === "running" ? strings.toolStarted(tool) : `${tool}: ${toolStatusText(status, strings)}`);
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
    if (message) announcer.sayAll(spokenTexts(message.querySelectorAll(".markdown, .note")));
  }
}

function toolCalls({ blocks }: AssistantMessage): ToolBlock[] {
  return blocks.filter((block) => block.type === "tool");
}
