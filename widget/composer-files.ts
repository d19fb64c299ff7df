/** The files of the draft. What judges, reads and draws them is a chunk, which comes with the first file. */

import { nothing } from "lit";
import type { Attachment } from "../server/protocol/attachments.ts";
import type { ConversationState } from "../server/protocol/chat.ts";
import type { AttachmentDraft, AttachmentLimits, DraftFile } from "./attachment-draft.ts";
import { LateChunk, type LateHost } from "./late-chunk.ts";
import type { SentFile } from "./transcript.ts";
import type { ComposerModel } from "./views/composer.ts";
import { unreachableView } from "./views/empty.ts";

/** What decides whether a file may be attached. */
export interface FileRules {
  /** What the server has said about the agent and its files; absent until it has. */
  readonly limits: AttachmentLimits | undefined;
  /** What goes with the message, and is as large as the files of all earlier ones. */
  readonly state: ConversationState;
}

export interface ComposerFilesOptions {
  /** There are other files, or other words about them. */
  readonly onChange: () => void;
  /** What became of each file, to be spoken. */
  readonly onFiles: (outcomes: readonly string[]) => void;
}

export class ComposerFiles {
  readonly #options: ComposerFilesOptions;
  readonly #chunk: LateChunk<"files">;
  #draft: AttachmentDraft | undefined;
  /** Dropped before the server has said what it takes, or before there is what judges and reads them. */
  readonly #early: File[] = [];

  constructor(host: LateHost, options: ComposerFilesOptions) {
    this.#options = options;
    this.#chunk = new LateChunk(host, "files");
  }

  /** Of all files, also those that are still being read, or wait. */
  get names(): readonly string[] {
    const { files = [], pending = [] } = this.#draft ?? {};
    return [...files, ...pending, ...this.#early].map(({ name }) => name);
  }

  /** Those that would go with a message. */
  get files(): readonly DraftFile[] {
    return this.#draft?.files ?? [];
  }

  /** Whether files are still being read, or wait for what reads them; for what could not be had no message waits. */
  get isReading(): boolean {
    return this.names.length > this.files.length && !this.#chunk.failed;
  }

  /** Takes what may be attached beside a text. Files wait for the limits and for the chunk; whoever has got those adds none. */
  async add(files: Iterable<File>, rules: FileRules | undefined, text: string): Promise<void> {
    const early = this.#early;
    const waiting = early.length;
    const isOnly = early.push(...files) === waiting;
    if (!isOnly) this.#options.onChange();
    if (!rules?.limits || !early[0] || (isOnly && this.#chunk.failed)) return;
    const draft = await this.#open();
    if (draft && early[0]) {
      this.#options.onFiles(await draft.add(early.splice(0), rules.limits, [rules.state, text]));
    }
  }

  /** Begins without files. Their object URLs belong to the message that has them now. */
  take(): void {
    this.#draft?.take();
  }

  /** Files of a message that is taken up again. */
  put(files: readonly SentFile[], attachments: readonly Attachment[]): void {
    if (files.length > 0) void this.#open().then((draft) => draft?.put(files, attachments));
  }

  /** Says which files a reload has lost. */
  lose(names: readonly string[]): void {
    if (names.length === 0) return;
    void this.#open().then((draft) => draft && this.#options.onFiles(draft.lose(names)));
  }

  /** The files, and why others were not taken; `onRemove` is called when the person has taken one out. */
  render(onRemove: () => void): Pick<ComposerModel, "files" | "refusals"> {
    const { chunk, failed } = this.#chunk;
    const draft = this.#draft;
    if (!chunk || !draft) {
      const isRefused = failed && this.#early[0];
      return {
        files: this.names.join(", "),
        refusals: isRefused ? unreachableView(() => void this.#open()) : nothing,
      };
    }
    const remove = ({ id }: DraftFile) => {
      draft.remove(id);
      onRemove();
    };
    return {
      files: chunk.filesView(draft.files, "draft-files", remove),
      refusals: chunk.refusalsView(draft),
    };
  }

  async #open(): Promise<AttachmentDraft | undefined> {
    const chunk = await this.#chunk.load();
    if (chunk) this.#draft ??= new chunk.AttachmentDraft(this.#options.onChange);
    return this.#draft;
  }
}
