/** Notices what happens in a reply: tells the page when it has ended, and a listener each step by voice. */

import type { LitElement } from "lit";
import { AgentChatDoneEvent, AgentChatErrorEvent, AgentChatToolEvent } from "./agent-chat.events.ts";
import { type Announcer, spokenLines } from "./announcer.ts";
import type { StepModes } from "./step-modes.ts";
import { strings } from "./strings.ts";
import { type Message, type Reply, replyText, type ToolBlock } from "./transcript.ts";
import { toolStatus } from "./views/tool-status.ts";

export class ReplyWatcher {
  readonly #host: LitElement & StepModes;
  readonly #announcer: Announcer;
  #streaming: string | undefined;
  /** What was told of the reply's tool calls: id and status. */
  readonly #told = new Set<string>();

  constructor(host: LitElement & StepModes, announcer: Announcer) {
    this.#host = host;
    this.#announcer = announcer;
  }

  /** To be called after every change of the transcript. */
  watch(messages: readonly Message[]): void {
    const last = messages.at(-1);
    if (last?.role !== "assistant") {
      this.#streaming = undefined;
    } else if (last.status !== "streaming") {
      if (this.#streaming === last.id) this.#ended(last);
      this.#streaming = undefined;
    } else if (this.#streaming !== last.id) {
      this.#streaming = last.id;
      this.#told.clear();
      this.#announcer.say(strings.answering);
    } else {
      this.#tellTools(last);
    }
  }

  #tellTools({ blocks, status }: Reply): void {
    for (const block of blocks) {
      const news = `${block.id} ${block.type === "tool" && block.status}`;
      if (block.type !== "tool" || this.#told.has(news)) continue;
      this.#told.add(news);
      this.#host.dispatchEvent(new AgentChatToolEvent(block));
      // What is over with its answer needs no word: the answer has one.
      if (status === "streaming" && this.#host.tools !== "hidden") this.#sayTool(block);
    }
  }

  #sayTool({ tool, status }: ToolBlock): void {
    this.#announcer.say(status === "running" ? strings.toolStarted(tool) : `${tool}: ${toolStatus(status)}`);
  }

  #ended(reply: Reply): void {
    const { failure, finishReason } = reply;
    this.#tellTools(reply);
    if (failure) {
      this.#host.dispatchEvent(new AgentChatErrorEvent(failure));
      this.#announcer.interrupt(failure.message);
      return;
    }
    this.#host.dispatchEvent(new AgentChatDoneEvent(replyText(reply), finishReason ?? "stop"));
    // What is spoken is what is drawn: Markdown's marks are gone from it.
    void this.#host.updateComplete.then(() => this.#announcer.sayLines(spokenLines(this.#drawnTexts())));
  }

  #drawnTexts(): Iterable<Element> {
    const message = [...this.#host.renderRoot.querySelectorAll(".message.assistant")].at(-1);
    return message?.querySelectorAll(".markdown, .note") ?? [];
  }
}
