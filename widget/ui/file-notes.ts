/** Which files of the composer are still being read, and why others were refused. Loaded while an empty chat is idle. */

import { html, nothing, type TemplateResult } from "lit";
import "../i18n/add-part-texts.ts";
import type { Strings } from "../i18n/strings.ts";
import styles from "../styles/file-notes.css";
import { partSheets } from "../styles/part-sheets.ts";
import { ChatPart } from "./chat-part.ts";
import { iconButton } from "./controls.ts";
import { icons } from "./icons.ts";

/** A note on a file, such as why it was refused. Files with the same note share one sentence. */
export interface FileNote {
  readonly name: string;
  readonly say: (strings: Strings, names: string) => string;
}

export class FileNotesElement extends ChatPart {
  static override readonly sheets = partSheets(styles);
  static override properties = { pending: { attribute: false }, refusals: { attribute: false } };
  /** Files that are still being read. */
  pending: readonly File[] = [];
  refusals: readonly FileNote[] = [];
  /** Hides the refusals. */
  dismiss!: () => void;

  /** One sentence for each reason, with the names of all files that it applies to. */
  static sentencesOf(notes: readonly FileNote[], strings: Strings): readonly string[] {
    const groups = new Map<string, Pick<FileNote, "say"> & { readonly names: string[] }>();
    for (const { name, say } of notes) {
      const reason = say(strings, "");
      const group = groups.get(reason) ?? { say, names: [] };
      group.names.push(name);
      groups.set(reason, group);
    }
    const list = new Intl.ListFormat(strings.lang);
    return [...groups.values()].map(({ say, names }) => say(strings, list.format(names)));
  }

  protected override render(): TemplateResult {
    return html`
      ${this.pending.map(({ name }) => html`<p class="reading">${icons.spinner}${name}</p>`)}
      ${this.refusals.length === 0 ? nothing : this.#renderReasons()}
    `;
  }

  #renderReasons(): TemplateResult {
    const { strings } = this.context;
    return html`
      <div part="refusals" class="refusals">
        ${icons.alert}
        <ul class="reasons">
          ${FileNotesElement.sentencesOf(this.refusals, strings).map((sentence) => html`<li>${sentence}</li>`)}
        </ul>
        ${iconButton("dismiss", strings.dismiss, icons.close, () => this.dismiss())}
      </div>
    `;
  }
}
