/** The built-in message actions: buttons below an answer. */

import type { TemplateResult } from "lit";
import type { AssistantMessage } from "../conversations/messages.ts";
import { copyOn } from "./actions.ts";
import type { ChatContext } from "./context.ts";
import type { Action, MessagePort } from "./extensions.ts";
import { icons } from "./icons.ts";

/** An answer, as passed to an action. */
export interface AnswerPort extends MessagePort {
  readonly message: AssistantMessage;
  readonly context: ChatContext;
  /** Whether another answer can be asked for. */
  readonly canRetry: boolean;
  /** The elements that show its texts. */
  drawn(): Iterable<Element>;
}

/** The built-in actions. The thumbs are in `feedback.ts`, which not every chat loads. */
export function messageActions({ strings }: ChatContext): readonly Action<AnswerPort, TemplateResult>[] {
  return [
    {
      name: "copy",
      label: strings.copyAnswer,
      icon: icons.copy,
      isAvailable: hasText,
      run: ({ text, context, drawn }, event) =>
        copyOn(event, ({ copyDrawn }, button) => copyDrawn(text, drawn(), button), context),
    },
    {
      name: "ask-again",
      label: strings.askAgain,
      icon: icons.retry,
      isAvailable: ({ canRetry, message }) =>
        canRetry && !message.failure && message.finishReason !== "approval_required",
      run: ({ context }) => context.actions.retry(),
    },
  ];
}

/** Whether an answer has text, so that it can be copied and rated. */
export function hasText({ text }: AnswerPort): boolean {
  return text !== "";
}
