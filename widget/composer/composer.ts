import { html, nothing, type PropertyValues, type TemplateResult } from "lit";
import type { TextType } from "../../server/protocol/attachments.ts";
import type { AgentInfo } from "../../server/protocol/chat.ts";
import type { ChatSession } from "../conversations/chat-session.ts";
import type { OutgoingMessage } from "../conversations/conversation.ts";
import type { EditedMessage, Written } from "../conversations/tab-slot.ts";
import { renderActions } from "../ui/actions.ts";
import { ChatPart } from "../ui/chat-part.ts";
import { hasTouchKeyboard, iconButton, revealWritten, smallButton } from "../ui/controls.ts";
import type { ComposerAction, ComposerPort } from "../ui/extensions.ts";
import type { FileNote } from "../ui/file-notes.ts";
import { icons } from "../ui/icons.ts";
import { isTaken } from "../ui/keys.ts";
import { fileNotes, loadPart, loadPartEventually } from "../ui/lazy-parts.ts";
import type { MessageEditor } from "../ui/message-list.ts";
import { DraftFiles, draftFilesOf } from "./attachments.ts";
import { ENDINGS } from "./endings.ts";
import { type PastedText, pastedText } from "./pasted-text.ts";
import type { DraftFile } from "./read-file.ts";

/** With one line the field is lower, even with the larger paddings for touch, and with two lines it is higher. */
const ONE_LINE_PX = 50;

const BUSY_NOTE_FOR_MS = 4_000;

/** A text with more characters keeps the direction that it has. */
const LONG_TEXT = 20_000;

/**
 * The card with the text field, its files and its buttons: below the conversation with the draft, and in place of a
 * message that is being edited.
 */
export class Composer extends ChatPart implements ComposerPort, MessageEditor {
  static override properties = {
    info: { attribute: false },
    ownActions: { attribute: false },
    session: { attribute: false },
    isBusy: { attribute: false },
    isAsking: { attribute: false },
    isStopping: { attribute: false },
    hidden: { type: Boolean, reflect: true },
    draftVersion: { state: true },
    busyNote: { state: true },
  };
  /** The server's information about its agent and the files that it accepts; absent until it has arrived. */
  info: AgentInfo | undefined;
  /** Buttons that the page adds. */
  ownActions: readonly ComposerAction[] = [];
  session!: Pick<ChatSession, "stateFor">;
  edits: EditedMessage | undefined;
  isBusy = false;
  /** Whether tool calls wait for a decision. A message declines them instead. */
  isAsking = false;
  isStopping = false;
  /** Why Enter has just sent nothing. */
  private busyNote = "";
  #busyNoteTimer: ReturnType<typeof setTimeout> | undefined;
  /** Grows with each change of the draft. */
  private draftVersion = 0;
  #files = new DraftFiles(() => this.#changed());
  /** The content of the text field. */
  #text = "";
  #pasted: readonly PastedText[] = [];
  /** Whether the user has typed the text, or a part of it. */
  #isTyped = false;
  /** Resolves when the session has decided about the message that was sent last. */
  #sending: Promise<void> | undefined;
  /** Whether the last key belonged to an input method. */
  #hasJustComposed = false;
  #infoWaiters: ((info: AgentInfo) => void)[] = [];

  /** The text that is being written, with long pasted texts at its end. */
  get draft(): string {
    return this.#pasted.reduce((draft, { text }) => behind(draft, text), this.#text);
  }

  set draft(text: string) {
    this.#isTyped = false;
    // A page may set something else than a string.
    this.#write(String(text ?? ""), []);
  }

  /** What is kept of the draft over a reload, and while another conversation is shown. */
  get written(): Written {
    const [text, pasted, files] = [this.#text, this.#pasted, this.#files];
    const putBack = () => {
      this.#isTyped = false;
      this.#files = files;
      this.#write(text, pasted);
    };
    return { text: this.draft, files: files.names, putBack };
  }

  /** The draft as a message to be sent. */
  get outgoing(): OutgoingMessage & { readonly files: readonly DraftFile[] } {
    const { files } = this.#files;
    return { text: this.draft.trim(), attachments: files.map(({ attachment }) => attachment), files };
  }

  /** Restores an earlier page load's draft, and names files that are lost. A text set by the page takes precedence. */
  async restore({ text, files }: Written): Promise<void> {
    await this.#sending;
    const { draft } = this;
    // Typed text comes before pasted texts.
    const pasted = draft.slice(this.#text.length);
    const typed = text.endsWith(pasted) ? text.slice(0, text.length - pasted.length) : text;
    const isThere = draft.includes(text) || this.#text.includes(typed);
    if (draft === "") this.draft = text;
    else if (this.#isTyped && !isThere) this.#write(join(typed, this.#text));
    if (files.length > 0) void this.#announce(this.#files.reportLost(files));
  }

  /** Shows another draft, in place of this one and of its files, including those that are still being read. */
  show({ text, files, putBack }: Written): void {
    if (putBack) {
      putBack();
      return;
    }
    this.#files = new DraftFiles(() => this.#changed());
    this.draft = text;
    if (files.length > 0) void this.#announce(this.#files.reportLost(files));
  }

  override focus(): void {
    this.#field?.focus({ preventScroll: true });
  }

  /** Focuses the field and moves the cursor to the end: browsers put it at the start. */
  focusEnd(): void {
    this.focus();
    this.#field?.setSelectionRange(this.#text.length, this.#text.length);
    revealWritten(this);
  }

  override blur(): void {
    this.#field?.blur();
  }

  insert(text: string): void {
    const field = this.#field;
    field?.setRangeText(text, field.selectionStart, field.selectionEnd, "end");
    this.#input();
  }

  /** Resolves when the files have been read. Refusals are shown and announced. */
  async addFiles(files: Iterable<File>): Promise<void> {
    const draft = this.#files;
    const outcomes = await draft.add([...files], async () => {
      const rules = this.info ?? (await new Promise<AgentInfo>((resolve) => this.#infoWaiters.push(resolve)));
      return { rules, sentWith: [this.session.stateFor(this.edits?.id), this.draft] };
    });
    if (draft === this.#files) void this.#announce(outcomes);
  }

  /** Whether a message can join the draft. If it has too many files for that, says so. */
  async canJoin(message: OutgoingMessage): Promise<boolean> {
    const { info: rules } = this;
    const others = draftFilesOf(message);
    if (!rules || others.length === 0) return true;
    const sentWith = [this.session.stateFor(undefined), message.text, this.draft];
    const notes = await this.#files.refuse(others, { rules, sentWith });
    void this.#announce(notes);
    return notes.length === 0;
  }

  /** Puts a message that was not sent before the draft, and names those of its files that are lost. */
  restoreUnsent(message: OutgoingMessage): void {
    const { text, files, attachments } = message;
    this.#replace(join(text, this.#text), [...draftFilesOf(message), ...this.#files.files]);
    this.focus();
    void this.restore({ text: "", files: files.slice(attachments.length).map(({ name }) => name) });
  }

  protected override updated(changed: PropertyValues): void {
    const { info } = this;
    if (info) for (const resolve of this.#infoWaiters.splice(0)) resolve(info);
    // Only after these changes, because growing the field forces a layout of the page.
    if (["draftVersion", "info", "hidden"].some((name) => changed.has(name))) this.#growField();
  }

  protected override render(): TemplateResult {
    const { edits } = this;
    const { strings } = this.context;
    const mediaTypes = this.info?.attachments.media_types;
    // The button's place is kept until the server has answered: the text must not move under the cursor.
    const canAttach = mediaTypes?.length !== 0;
    return html`
      ${
        this.isAsking && this.draft !== ""
          ? html`<p class="status-line declining" role="status">${strings.writingDeclines}</p>`
          : nothing
      }
      ${this.busyNote && (this.isBusy || this.busyNote === strings.wentOnElsewhere) ? html`<p class="status-line busy-note">${this.busyNote}</p>` : nothing}
      <div part="composer" class="composer" @mousedown=${focusField}>
        ${this.#renderNotes()} ${this.#renderFiles()}
        <div class=${canAttach ? "composer-row attachable" : "composer-row"}>
          <input
            type="file"
            multiple
            hidden
            accept=${mediaTypes?.flatMap((type) => [type, ...(ENDINGS[type as TextType] ?? [])]).join() ?? ""}
            @change=${this.#pick}
          />
          ${canAttach ? this.#renderAttach() : nothing}
          <textarea
            id=${edits ? "edit" : "input"}
            part="input"
            rows="1"
            aria-label=${edits ? strings.editMessage : strings.composerLabel}
            aria-describedby=${edits ? "editing" : nothing}
            placeholder=${this.isAsking ? strings.decideOrWrite : this.info ? strings.placeholder(this.context.agent) : strings.composerLabel}
            .value=${this.#text}
            @input=${this.#input}
            @keydown=${this.#keyDown}
            @compositionend=${this.#compositionEnd}
            @paste=${this.#paste}
          ></textarea>
          ${
            edits
              ? this.#renderEditButtons()
              : html`${renderActions(this.ownActions, this, "icon-button round action")} ${this.#renderSend()}`
          }
        </div>
      </div>
      ${edits ? html`<p part="editing" id="editing" class="note">${strings.editing}</p>` : nothing}
    `;
  }

  #renderNotes(): TemplateResult | typeof nothing {
    const { pending, refusals } = this.#files;
    if (pending.length + refusals.length === 0) return nothing;
    void loadPartEventually("agent-chat-file-notes");
    return html`<agent-chat-file-notes
      .context=${this.context}
      .pending=${pending}
      .refusals=${refusals}
      .dismiss=${() => this.#files.dismissRefusals()}
    ></agent-chat-file-notes>`;
  }

  #renderFiles(): TemplateResult | typeof nothing {
    const files = [...this.#files.files, ...this.#pasted];
    if (files.length === 0) return nothing;
    void loadPartEventually("agent-chat-files");
    return html`<agent-chat-files
      .context=${this.context}
      .files=${files}
      .takeOut=${this.#takeOut}
      .unfold=${this.#unfold}
    ></agent-chat-files>`;
  }

  readonly #takeOut = (file: DraftFile | PastedText): void => {
    if ("text" in file) this.#write(this.#text, without(this.#pasted, [file]));
    else this.#files.remove(file);
    this.focus();
  };

  /** Puts a pasted text into the field. */
  readonly #unfold = (pasted: PastedText): void => {
    this.#isTyped = true;
    this.#write(behind(this.#text, pasted.text), without(this.#pasted, [pasted]));
    this.focus();
  };

  #renderAttach(): TemplateResult {
    const pick = () => this.querySelector("input")?.click();
    return iconButton("attach", this.context.strings.attach, icons.plus, pick, {
      className: "icon-button round attach",
      disabled: !this.info,
    });
  }

  /**
   * One button in one place, which keeps the focus: it sends, or stops an answer that is streaming while nothing is
   * written.
   */
  #renderSend(): TemplateResult {
    const { strings } = this.context;
    const className = "icon-button round filled";
    return this.isBusy && !this.#canSend
      ? iconButton("stop", strings.stop, icons.stop, this.#stop, { className, disabled: this.isStopping })
      : iconButton("send", strings.send, icons.send, () => this.#press(), { className, disabled: !this.#canSend });
  }

  #renderEditButtons(): TemplateResult {
    const { strings, actions } = this.context;
    return html`
      ${smallButton("cancel-edit", strings.cancelEdit, () => actions.endEdit())}
      ${smallButton("send-edit", strings.submit, () => this.#press(), !this.#canSend, "small-button filled")}
    `;
  }

  get #field(): HTMLTextAreaElement | null {
    return this.querySelector("textarea");
  }

  get #canSend(): boolean {
    const { pending, files } = this.#files;
    return pending.length === 0 && (files.length + this.#pasted.length > 0 || this.#text.trim() !== "");
  }

  readonly #input = (): void => {
    this.#isTyped = true;
    this.#text = this.#field?.value ?? "";
    this.#changed();
  };

  readonly #keyDown = (event: KeyboardEvent): void => {
    // Some browsers fire `compositionend` before the key event that caused it, which may be Enter.
    if (isTaken(event) || this.#hasJustComposed) return;
    const { key, shiftKey, altKey } = event;
    const isCommand = event.ctrlKey || event.metaKey;
    if (key === "ArrowUp" && this.draft === "" && !this.edits && !(shiftKey || altKey || isCommand)) {
      event.preventDefault();
      this.context.actions.recall();
    }
    if (key === "Enter" && isCommand && this.isAsking && this.context.actions.goToApproval()) {
      event.preventDefault();
      return;
    }
    // On a touch screen the button sends, and Enter makes a new line.
    if (key !== "Enter" || shiftKey || (hasTouchKeyboard() && !isCommand)) return;
    event.preventDefault();
    // A key that is held down may have been pressed on a button that is gone.
    if (!event.repeat) this.#send();
  };

  readonly #compositionEnd = (): void => {
    this.#hasJustComposed = true;
    setTimeout(() => {
      this.#hasJustComposed = false;
    });
  };

  readonly #paste = (event: ClipboardEvent): void => {
    const files = [...(event.clipboardData?.files ?? [])];
    // Word processors add a picture of the text to the formatted text: the text is what is meant. The macOS Finder adds
    // the name of a file, but without a formatted text.
    const isText = ["text/plain", "text/html"].every((type) => event.clipboardData?.getData(type));
    if (files.length > 0 && !isText) {
      event.preventDefault();
      void this.addFiles(files);
      return;
    }
    const { selectionStart, value } = event.target as HTMLTextAreaElement;
    // Pasted before other text, or over a selection, it stays where it is pasted.
    if (value.slice(selectionStart).trim() !== "") return;
    const pasted = pastedText(event.clipboardData?.getData("text/plain") ?? "");
    if (!pasted) return;
    event.preventDefault();
    void this.#addPasted(pasted);
  };

  async #addPasted(pasted: PastedText): Promise<void> {
    this.#isTyped = true;
    this.#write(this.#text, [...this.#pasted, pasted]);
    try {
      await loadPart("agent-chat-files");
      const { strings, actions } = this.context;
      actions.announce(strings.fileAttached(pasted.name));
    } catch {
      // Nothing would show the pasted text.
      if (this.#pasted.includes(pasted)) this.#unfold(pasted);
    }
  }

  readonly #pick = ({ target }: Event): void => {
    const picker = target as HTMLInputElement;
    const files = [...(picker.files ?? [])];
    // So that picking the same file again fires `change`.
    picker.value = "";
    void this.addFiles(files);
    this.focus();
  };

  readonly #stop = ({ detail }: MouseEvent): void => {
    // Ignores the second click of a double click, which was meant for the send button in the same place.
    if (detail > 1) return;
    this.context.actions.stop();
    this.focus();
  };

  #send(): void {
    if (!this.#canSend) return;
    // Sent once, even if pressed again while an earlier conversation is being restored.
    this.#sending ??= this.#sendDraft().finally(() => {
      this.#sending = undefined;
    });
  }

  /** Sends, and hides an on-screen keyboard, which would cover the answer. */
  #press(): void {
    this.#send();
    if (hasTouchKeyboard()) this.blur();
    else this.focus();
  }

  /** The session decides whether the message is accepted; only then the draft is removed. */
  async #sendDraft(): Promise<void> {
    const { outgoing, edits } = this;
    const [text, pasted, files] = [this.#text, this.#pasted, this.#files];
    const outcome = await this.context.actions.send(outgoing, { replaces: edits?.id });
    if (outcome === "busy" || outcome === "full") this.#explain(outcome);
    if (outcome !== "accepted") return;
    if (edits) return this.context.actions.endEdit();
    // What was written or added meanwhile stays, also in another conversation.
    files.removeSent(outgoing.files);
    if (files !== this.#files) return;
    this.#isTyped = false;
    let rest = this.#text.startsWith(text) ? this.#text.slice(text.length) : this.#text;
    // The user may have moved a pasted text into the field meanwhile.
    for (const it of without(pasted, this.#pasted)) rest = rest.replace(it.text, "").trimStart();
    this.#write(rest, without(this.#pasted, pasted));
  }

  /** Shows for a moment, and announces, that an answer has to end first, or that too many messages are pending. */
  #explain(outcome: "busy" | "full"): void {
    const { strings, actions } = this.context;
    if (!this.isBusy || this.busyNote) return;
    this.note(outcome === "full" ? strings.pendingFull : strings.answering);
    actions.announce(this.busyNote);
  }

  /** Shows a note for a moment, such as why nothing was sent. */
  note(text: string, forMs = BUSY_NOTE_FOR_MS): void {
    this.busyNote = text;
    clearTimeout(this.#busyNoteTimer);
    this.#busyNoteTimer = setTimeout(() => {
      this.busyNote = "";
    }, forMs);
  }

  #write(text: string, pasted = this.#pasted): void {
    this.#text = text;
    this.#pasted = pasted;
    this.#changed();
  }

  #replace(text: string, files: readonly DraftFile[]): void {
    this.#isTyped = false;
    this.#text = text;
    this.#files.replace(files);
  }

  #changed(): void {
    this.draftVersion += 1;
    this.context.actions.saveDraft();
  }

  async #announce(notes: readonly FileNote[]): Promise<void> {
    const { actions, strings } = this.context;
    const module = notes.length > 0 && (await fileNotes.loadEventually());
    if (module) actions.announce(...module.FileNotesElement.sentencesOf(notes, strings));
  }

  #growField(): void {
    const field = this.#field;
    if (!field) return;
    const { length } = field.value;
    // With `auto` a browser searches the whole text for its direction on every layout.
    field.dir = length > LONG_TEXT ? getComputedStyle(field).direction : "auto";
    // Tall until the text is gone: otherwise it would alternate while a line fits only one of the two widths.
    if (!length || field.scrollHeight > ONE_LINE_PX || this.edits) {
      field.parentElement?.toggleAttribute("data-tall", length > 0 || this.edits !== undefined);
    }
    // Browsers without `field-sizing: content` need the height set by hand.
    if (!CSS.supports("field-sizing", "content")) {
      field.style.height = "auto";
      if (length) field.style.height = `${field.scrollHeight}px`;
    }
    revealWritten(this);
  }
}

function without<Item>(all: readonly Item[], some: readonly Item[]): readonly Item[] {
  return all.filter((it) => !some.includes(it));
}

function behind(text: string, more: string): string {
  return text ? `${text}\n\n${more}` : more;
}

function join(earlier: string, later: string): string {
  return `${earlier}\n\n${later}`.trim();
}

/** The card looks like one field: a press on its edge, between its buttons or beside its files focuses the text. */
function focusField(event: MouseEvent): void {
  const target = event.target as Element;
  if (!target.matches(".composer,.composer-row,.draft-files")) return;
  // The default action would take the focus away again.
  event.preventDefault();
  (event.currentTarget as Element).querySelector("textarea")?.focus();
}
