/** The draft: text and files, and the keys, drops and pastes that make it. */

import type { ReactiveController, TemplateResult } from "lit";
import { ComposerFiles, type FileRules } from "./composer-files.ts";
import type { KeptDraft, OutgoingMessage } from "./conversation.ts";
import type { LateHost } from "./late-chunk.ts";
import { growField, touchKeyboard } from "./text-field.ts";
import { composerView } from "./views/composer.ts";

export interface ComposerOptions {
  /** `empty` takes the message out of the composer: for a message that is accepted. */
  readonly onSend: (message: OutgoingMessage, empty: () => void) => void;
  readonly onStop: () => void;
  /** The draft is another one, by typing or because it was sent. */
  readonly onDraftChanged: () => void;
  /** ↑ in an empty field: the person wants the last message back. */
  readonly onRecall: () => void;
  /** What became of each file, to be spoken. */
  readonly onFiles: (outcomes: readonly string[]) => void;
}

/** What the rest of the element knows about the moment. */
export interface ComposerState extends FileRules {
  readonly busy: boolean;
  readonly stopping: boolean;
  /** An earlier conversation is about to be shown: what is to be sent waits, since it would take its place. */
  readonly restoring: boolean;
}

export class Composer implements ReactiveController {
  readonly #host: LateHost;
  readonly #options: ComposerOptions;
  readonly #files: ComposerFiles;
  #state: ComposerState | undefined;
  #text = "";
  /** Whether the person has typed the text, or a part of it. */
  #isTyped = false;
  /** The text at an Enter that waits until an earlier conversation is there. */
  #pressed: string | undefined;
  /** What an earlier page had in the field, where this one has a text already. */
  #earlier = "";
  /** The field that shows the text: a new one appears when a key was asked for meanwhile. */
  #field: HTMLTextAreaElement | null = null;
  /** What the field's height was last made for. */
  #grown: readonly unknown[] = [];
  /** In the moment after a composition. */
  #composed = false;

  constructor(host: LateHost, options: ComposerOptions) {
    this.#host = host;
    this.#options = options;
    this.#files = new ComposerFiles(host, {
      onChange: () => this.#write(this.#text),
      onFiles: options.onFiles,
    });
    host.addController(this);
  }

  hostUpdated(): void {
    const input = this.#input;
    const { limits } = this.#state ?? {};
    if (input && input !== this.#field) input.value = this.#text;
    void this.addFiles([]);
    // Not with each frame of an answer: it lays the page out.
    const grown = [input, this.#text, limits];
    if (grown.some((it, index) => it !== this.#grown[index])) growField(input);
    this.#grown = grown;
    this.#field = input;
    if (!this.#state?.restoring) this.#catchUp();
  }

  /** The text that is being written. It may be set before the field is drawn. */
  get draft(): string {
    return this.#text;
  }

  set draft(text: string) {
    this.#isTyped = false;
    if (this.#field) this.#field.value = text;
    this.#write(text);
  }

  /** What a reload can bring back. */
  get kept(): KeptDraft {
    return { text: this.#text, files: this.#files.names };
  }

  /**
   * Begins with what an earlier page had here, and says which files are gone with it. A text that
   * the page itself has set takes its place.
   */
  restore({ text, files }: KeptDraft): void {
    if (this.#text === "") this.draft = text;
    else if (this.#isTyped) this.#earlier = text;
    this.#files.lose(files);
  }

  focus(): void {
    this.#input?.focus({ preventScroll: true });
  }

  /** Takes the message out, and leaves the composer empty. */
  take(): OutgoingMessage {
    const message = this.#messageOf(this.#text);
    this.#files.take();
    this.draft = "";
    return message;
  }

  /** Puts a message in that was taken out or sent. */
  put({ text, attachments, files }: OutgoingMessage): void {
    this.draft = text;
    this.#files.put(files, attachments);
  }

  /** Puts a message in above what is being written, of which nothing is lost, to go on with both. */
  putBefore({ text, attachments, files }: OutgoingMessage): void {
    const draft = this.take();
    this.put({
      text: `${text}\n\n${draft.text}`.trim(),
      attachments: [...attachments, ...draft.attachments],
      files: [...files, ...draft.files],
    });
    this.focus();
  }

  addFiles(files: Iterable<File>): Promise<void> {
    return this.#files.add(files, this.#state, this.#text);
  }

  render(state: ComposerState): TemplateResult {
    this.#state = state;
    return composerView({
      agent: state.limits?.agent ?? "",
      accept: state.limits?.attachments.media_types,
      busy: state.busy,
      stopping: state.stopping,
      canSend: this.#canSend,
      ...this.#files.render(() => this.focus()),
      onInput: () => {
        this.#isTyped = true;
        this.#write(this.#input?.value ?? "");
      },
      onKeyDown: this.#keyDown,
      onPaste: this.#paste,
      onPick: this.#pick,
      onAttach: () => this.#host.renderRoot.querySelector<HTMLInputElement>("[type=file]")?.click(),
      onSend: () => this.#send(),
      onComposed: () => {
        this.#composed = true;
        setTimeout(() => {
          this.#composed = false;
        });
      },
      onStop: ({ detail }) => {
        // The second click of two meant the button that sends, which was here.
        if (detail > 1) return;
        this.#options.onStop();
        this.focus();
      },
    });
  }

  get #input(): HTMLTextAreaElement | null {
    // By its id: for anything else a browser looks through all of the transcript, with each frame.
    return this.#host.renderRoot.querySelector<HTMLTextAreaElement>("#input");
  }

  get #canSend(): boolean {
    const { isReading, files } = this.#files;
    return !isReading && (files.length > 0 || this.#text.trim() !== "");
  }

  #messageOf(text: string): OutgoingMessage {
    const { files } = this.#files;
    return { text: text.trim(), attachments: files.map(({ attachment }) => attachment), files };
  }

  #write(text: string): void {
    this.#text = text;
    this.#options.onDraftChanged();
    this.#host.requestUpdate();
  }

  readonly #keyDown = (event: KeyboardEvent) => {
    // Safari ends a composition before the key that ended it, and then reports 229; others may report Enter.
    if (event.isComposing || event.keyCode === 229 || this.#composed) return;
    if (event.key === "ArrowUp" && this.#text === "") {
      event.preventDefault();
      this.#options.onRecall();
    }
    if (event.key !== "Enter" || event.shiftKey || touchKeyboard.matches) return;
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
    if (!this.#canSend) return;
    // Of several early ones the first counts.
    this.#pressed ??= this.#text;
    if (!this.#state?.restoring) this.#catchUp();
    this.focus();
  }

  /**
   * Sends what Enter was pressed for. What was written since then stays, and so does a message that
   * is not accepted.
   */
  #catchUp(): void {
    const [pressed, earlier] = [this.#pressed, this.#earlier];
    this.#pressed = undefined;
    this.#earlier = "";
    if (pressed !== undefined && this.#text.startsWith(pressed)) {
      const rest = this.#text.slice(pressed.length);
      this.#options.onSend(this.#messageOf(pressed), () => {
        this.take();
        this.draft = rest;
      });
    }
    if (!this.#text.includes(earlier)) this.draft = `${earlier}\n\n${this.#text}`.trim();
  }
}
