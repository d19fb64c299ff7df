/** The draft: text and files, and the keys, drops and pastes that make it. */

import {
  nothing,
  type ReactiveController,
  type ReactiveControllerHost,
  type TemplateResult,
} from "lit";
import { AttachmentDraft, type AttachmentLimits } from "./attachment-draft.ts";
import type { OutgoingMessage } from "./chat-session.ts";
import { draftFilesView, refusalsView } from "./views/attachment-list.ts";
import { composerView } from "./views/composer.ts";

export interface ComposerHost extends ReactiveControllerHost {
  readonly renderRoot: HTMLElement | DocumentFragment;
}

export interface ComposerOptions {
  readonly onSend: (message: OutgoingMessage) => void;
  readonly onStop: () => void;
  /** Each refused file's reason, to be spoken. */
  readonly onRefused: (refusals: readonly string[]) => void;
}

/** What the rest of the element knows about the moment. */
export interface ComposerState extends AttachmentLimits {
  readonly busy: boolean;
  readonly stopping: boolean;
}

export class Composer implements ReactiveController {
  readonly #host: ComposerHost;
  readonly #options: ComposerOptions;
  readonly #draft: AttachmentDraft;
  #state: ComposerState | undefined;

  constructor(host: ComposerHost, options: ComposerOptions) {
    this.#host = host;
    this.#options = options;
    this.#draft = new AttachmentDraft(() => host.requestUpdate());
    host.addController(this);
  }

  hostUpdated(): void {
    this.#grow();
  }

  focus(): void {
    this.#input?.focus({ preventScroll: true });
  }

  async addFiles(files: Iterable<File>): Promise<void> {
    if (!this.#state) return;
    const refusals = await this.#draft.add([...files], this.#state);
    if (refusals.length > 0) this.#options.onRefused(refusals);
  }

  render(state: ComposerState): TemplateResult {
    this.#state = state;
    return composerView({
      agent: state.agent,
      accept: state.attachments.media_types,
      busy: state.busy,
      stopping: state.stopping,
      canSend: this.#canSend,
      files: draftFilesView(this.#draft.files, this.#remove),
      refusals: this.#draft.refusals.length > 0 ? refusalsView(this.#draft) : nothing,
      onInput: () => this.#host.requestUpdate(),
      onKeyDown: this.#keyDown,
      onPaste: this.#paste,
      onPick: this.#pick,
      onAttach: () => this.#host.renderRoot.querySelector<HTMLInputElement>(".file-input")?.click(),
      onSubmit: this.#submit,
      onStop: () => {
        this.#options.onStop();
        this.focus();
      },
    });
  }

  get #input(): HTMLTextAreaElement | null {
    return this.#host.renderRoot.querySelector("textarea");
  }

  get #canSend(): boolean {
    if (this.#draft.reading) return false;
    return this.#draft.files.length > 0 || (this.#input?.value ?? "").trim() !== "";
  }

  readonly #remove = (id: number) => {
    this.#draft.remove(id);
    this.focus();
  };

  readonly #submit = (event: SubmitEvent) => {
    event.preventDefault();
    this.#send();
  };

  readonly #keyDown = (event: KeyboardEvent) => {
    // Safari ends a composition before the key that ended it; 229 is what it then reports.
    if (event.isComposing || event.keyCode === 229) return;
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    this.#send();
  };

  readonly #paste = (event: ClipboardEvent) => {
    const files = [...(event.clipboardData?.files ?? [])];
    // Word processors put a picture of the text beside the text: the text is what is meant.
    if (files.length === 0 || event.clipboardData?.getData("text/plain")) return;
    event.preventDefault();
    void this.addFiles(files);
  };

  readonly #pick = (event: Event) => {
    if (!(event.target instanceof HTMLInputElement)) return;
    const files = [...(event.target.files ?? [])];
    // So that picking the same file again is a change.
    event.target.value = "";
    void this.addFiles(files);
    this.focus();
  };

  #send(): void {
    const input = this.#input;
    if (!input || !this.#canSend || this.#state?.busy !== false) return;
    const files = this.#draft.take();
    const text = input.value.trim();
    input.value = "";
    this.#options.onSend({ text, attachments: files.map((file) => file.attachment), files });
    this.focus();
  }

  /** Browsers without `field-sizing: content` need the height set by hand. */
  #grow(): void {
    const input = this.#input;
    if (!input || CSS.supports("field-sizing", "content")) return;
    input.style.height = "auto";
    if (input.value !== "") input.style.height = `${input.scrollHeight}px`;
  }
}
