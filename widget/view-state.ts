/** What is open and what was just copied in the transcript: of the screen, not of the conversation. */

import { nothing, type ReactiveController } from "lit";
import type { Disclosure } from "./disclosure.ts";
import { LateChunk, type LateHost } from "./late-chunk.ts";
import { writeClipboard } from "./markdown/markdown-actions.ts";
import type { StepModes } from "./step-modes.ts";
import { strings } from "./strings.ts";
import { type Message, type Reply, replyText, type SentFile } from "./transcript.ts";
import type { OnRate } from "./views/feedback.ts";
import type { Step } from "./views/steps.ts";
import type { Sending } from "./views/upload.ts";

/** Drawn in one go, but one message at least: some 7 ms of work, and 30 on a phone. */
const PIECE_CHARS = 2_000;

const COPIED_FOR_MS = 2_000;

/** How long what has ended stays open: long enough to see that it ended. */
const LINGERS_FOR_MS = 1_000;

/** The element: its attributes of these names. */
export interface ViewHost extends LateHost, StepModes {
  readonly feedback: boolean;
}

/** Copies what was drawn as what it looks like, and its text; answers whether that was possible. */
type CopyDrawn = (text: string, drawn: Iterable<Element>) => Promise<boolean> | undefined;

export class ViewState implements Disclosure, ReactiveController {
  readonly modes: StepModes;
  readonly #host: ViewHost;
  readonly #files: LateChunk<"files">;
  readonly #steps: LateChunk<"steps">;
  readonly #feedback: LateChunk<"feedback">;
  readonly #beforeToggle: () => void;
  readonly #onRate: OnRate;
  readonly #copyDrawn: CopyDrawn;
  readonly #onCopyFailed: () => void;
  readonly #hasFocus: (id: string) => boolean;
  readonly #chosen = new Map<string, boolean>();
  /** What was open of its own accord, and the clock that closes it once it has ended. */
  readonly #lively = new Map<string, ReturnType<typeof setTimeout> | undefined>();
  #copied: string | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #version = 0;
  #messages: readonly Message[] = [];
  #undrawn: number | undefined;
  #drawing: ReturnType<typeof setTimeout> | undefined;

  constructor(
    host: ViewHost,
    {
      beforeToggle,
      onRate,
      copyDrawn,
      onCopyFailed,
      hasFocus,
    }: {
      beforeToggle: () => void;
      onRate: OnRate;
      copyDrawn: CopyDrawn;
      onCopyFailed: () => void;
      /** Whether the focus is in what the id opens. */
      hasFocus: (id: string) => boolean;
    },
  ) {
    this.#host = host;
    this.modes = host;
    this.#files = new LateChunk(host, "files");
    this.#steps = new LateChunk(host, "steps");
    this.#feedback = new LateChunk(host, "feedback");
    this.#beforeToggle = beforeToggle;
    this.#onRate = onRate;
    this.#copyDrawn = copyDrawn;
    this.#onCopyFailed = onCopyFailed;
    this.#hasFocus = hasFocus;
    host.addController(this);
  }

  /** Another one after every change, for views that are drawn again only when something changed. */
  get version(): string {
    const { thinking, tools } = this.modes;
    // What has come late is drawn everywhere at once.
    const chunks = [this.#files, this.#steps, this.#feedback].map(({ chunk }) => !chunk);
    return `${[this.#version, chunks, thinking, tools, this.#host.feedback]}`;
  }

  hostConnected(): void {
    this.#copied = undefined;
  }

  hostUpdated(): void {
    if (!this.#undrawn) return;
    clearTimeout(this.#drawing);
    this.#drawing = setTimeout(() => {
      this.#undrawn = this.#earlier(Math.min(this.#undrawn ?? 0, this.#messages.length));
      this.#host.requestUpdate();
    });
  }

  hostDisconnected(): void {
    clearTimeout(this.#timer);
  }

  /** The person's own choice always wins over the default. */
  isOpen(id: string, byDefault: boolean): boolean {
    return this.#chosen.get(id) ?? byDefault;
  }

  /** Open while it goes on and for a moment after. What was over when it first appeared is closed. */
  isOpenWhile(id: string, live: boolean): boolean {
    if (live) {
      clearTimeout(this.#lively.get(id));
      this.#lively.set(id, undefined);
    } else if (this.#lively.has(id) && this.#lively.get(id) === undefined) {
      const close = () => {
        this.#lively.delete(id);
        // The focus must not fall out of a row that closes by itself.
        if (this.#hasFocus(id)) this.#chosen.set(id, true);
        this.#changed();
      };
      this.#lively.set(id, setTimeout(close, LINGERS_FOR_MS));
    }
    return this.isOpen(id, this.#lively.has(id));
  }

  /** The person opens or closes something; the group that it belongs to then stays as it is. */
  toggle(id: string, wasOpen: boolean, group?: string): Promise<unknown> {
    this.#beforeToggle();
    this.#chosen.set(id, !wasOpen);
    if (group !== undefined) this.#chosen.set(group, true);
    this.#changed();
    return this.#host.updateComplete;
  }

  isCopied(id: string): boolean {
    return this.#copied === id;
  }

  /** What the agent did before it spoke; in words, if what draws it cannot be had. */
  steps(steps: readonly Step[], live: boolean): unknown {
    const chunk = this.#steps.get();
    if (chunk) return chunk.stepsView(steps, live, this);
    if (!this.#steps.failed) return nothing;
    return steps.map((step) => (step.type === "tool" ? `${step.tool} ` : strings.thinking));
  }

  /**
   * The files of a sent message; their names, as long as what draws them has not come. Of the last
   * message, which has the session with it, also how much of them has left.
   */
  files(files: readonly SentFile[], sending: Sending | false): unknown {
    const chunk = this.#files.get();
    return chunk?.sentFilesView(files, sending) ?? files.map(({ name }) => name).join(", ");
  }

  /** Thumbs, where the page asks for them. */
  feedback(reply: Reply): unknown {
    const chunk = this.#host.feedback && this.#feedback.get();
    return chunk ? chunk.feedbackView(reply, this, this.#onRate) : nothing;
  }

  /**
   * How many messages from the first on are not drawn yet. A long conversation appears from its end, and the rest of it in
   * pieces: drawn at once it would hold the page up.
   */
  undrawn(messages: readonly Message[]): number {
    this.#messages = messages;
    if (messages.length > 0) this.#undrawn ??= this.#earlier(messages.length);
    return this.#undrawn ?? 0;
  }

  /** Where the piece begins that ends before a message. */
  #earlier(end: number): number {
    let first = end;
    for (let chars = 0; first > 0 && chars < PIECE_CHARS; ) {
      const message = this.#messages[--first];
      if (message) chars += message.role === "user" ? message.text.length : replyText(message).length;
    }
    return first;
  }

  /** Copies a text for the button that was pressed; where it is drawn, too, as what it looks like. */
  async copy(button: HTMLElement, id: string, text: string, drawn?: Iterable<Element>): Promise<void> {
    const isDone = drawn && (await this.#copyDrawn(text, drawn));
    if (!isDone && !(await writeClipboard(text, button))) {
      this.#onCopyFailed();
      return;
    }
    this.#copied = id;
    this.#changed();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#copied = undefined;
      this.#changed();
    }, COPIED_FOR_MS);
  }

  /** Forgets everything, with the conversation that it was about. */
  clear(): void {
    this.#chosen.clear();
    this.#lively.clear();
    this.#changed();
  }

  #changed(): void {
    this.#version += 1;
    this.#host.requestUpdate();
  }
}
