/**
 * The bubble beside the closed launcher: a few words of the site's, or the beginning of an answer that arrived
 * meanwhile.
 */

import type { ReactiveControllerHost } from "lit";
import type { AgentChatLauncher } from "../element/public-types.ts";
import type { Announcer } from "../ui/controllers/announcer.ts";
import type { LauncherMemory } from "./state.ts";
import { onTrigger } from "./triggers.ts";

/** When the page does not say it: by then a visitor has looked around. */
const DEFAULT_AFTER_MS = 3_000;

/** What is shown of an answer, in characters. Each may take two of a text's units. */
const EXCERPT = 140;

export class LauncherPreview {
  /** What the bubble says; empty while there is none. */
  text = "";
  readonly #panel: ReactiveControllerHost;
  readonly #launcher: AgentChatLauncher;
  readonly #memory: LauncherMemory;
  readonly #announcer: Announcer;
  /** What the page had set when the bubble was planned. */
  #plannedFor = "";
  #cancel: (() => void) | undefined;

  constructor(
    panel: ReactiveControllerHost,
    launcher: AgentChatLauncher,
    memory: LauncherMemory,
    announcer: Announcer,
  ) {
    this.#panel = panel;
    this.#launcher = launcher;
    this.#memory = memory;
    this.#announcer = announcer;
  }

  /** Whether the person has closed it: then there is no other one in this session. */
  get isDismissed(): boolean {
    return this.#memory.state.preview === "dismissed";
  }

  /** Shows what the page wants to say, when it wants to; to be called when the launcher has changed. */
  plan(): void {
    const { preview, previewAfter } = this.#launcher;
    const wanted = `${previewAfter}\n${preview}`;
    if (wanted === this.#plannedFor) return;
    this.stop();
    this.#plannedFor = wanted;
    if (!preview.trim()) this.#show("");
    else if (this.#memory.state.preview === "seen") this.#greet();
    else this.#cancel = this.#onTrigger(previewAfter ?? DEFAULT_AFTER_MS);
  }

  /** Shows the beginning of an answer. */
  showExcerpt(answer: string): void {
    if (this.isDismissed) return;
    const text = answer.replace(/\s+/g, " ").trim();
    const characters = [...text.slice(0, 3 * EXCERPT)];
    const excerpt = characters.slice(0, EXCERPT).join("");
    // Not in the middle of a word, where words are apart.
    this.#show(characters.length > EXCERPT ? `${excerpt.replace(/\s\S{0,30}$/, "")}…` : excerpt);
  }

  hide(): void {
    this.#show("");
  }

  dismiss(): void {
    this.#memory.keep({ preview: "dismissed" });
    this.hide();
  }

  /** The next `plan` begins anew. */
  stop(): void {
    this.#cancel?.();
    this.#plannedFor = "";
  }

  #onTrigger(after: string | number): (() => void) | undefined {
    const cancel = onTrigger(this.#launcher, "preview-after", after, () => this.#greet());
    return cancel ?? this.#onTrigger(DEFAULT_AFTER_MS);
  }

  /** Shows the page's words, unless the person has opened the chat before. */
  #greet(): void {
    const { open, preview } = this.#memory.state;
    if (open !== undefined || this.isDismissed) return;
    this.#show(this.#launcher.preview);
    if (preview === "seen") return;
    this.#memory.keep({ preview: "seen" });
    this.#announcer.say(this.#launcher.preview);
  }

  #show(text: string): void {
    this.text = text;
    this.#panel.requestUpdate();
  }
}
