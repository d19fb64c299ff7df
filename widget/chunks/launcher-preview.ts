/** The bubble beside the closed launcher: a few words of the site's, or the beginning of an answer that came meanwhile. */

import type { Announcer } from "../announcer.ts";
import { reportAttribute } from "../attribute-checks.ts";
import type { LauncherMemory } from "./launcher-memory.ts";
import type { LauncherHost } from "./launcher-view.ts";
import { atMoment, MOMENT } from "./moment.ts";

/** When a page does not say it: somebody has looked around by then. */
const DEFAULT_AFTER_MS = 3_000;

/** What is shown of an answer, in characters. */
const EXCERPT = 140;

export class LauncherPreview {
  readonly #host: LauncherHost;
  readonly #memory: LauncherMemory;
  readonly #announcer: Announcer;
  #text = "";
  /** What the page had said when the bubble was planned. */
  #plannedFor = "";
  #cancel: (() => void) | undefined;

  constructor(host: LauncherHost, memory: LauncherMemory, announcer: Announcer) {
    this.#host = host;
    this.#memory = memory;
    this.#announcer = announcer;
  }

  /** What the bubble says; empty while there is none. */
  get text(): string {
    return this.#text;
  }

  /** Whether the person has closed it: then there is no other one in this session. */
  get isDismissed(): boolean {
    return this.#memory.state.preview === "dismissed";
  }

  /** To be called before each drawing: shows what the page wants to say, at its moment. */
  plan(): void {
    const { preview, previewAfter } = this.#host;
    const wanted = `${previewAfter}\n${preview}`;
    if (wanted === this.#plannedFor) return;
    this.stop();
    this.#plannedFor = wanted;
    if (!preview?.trim()) this.#text = "";
    else if (this.#memory.state.preview === "seen") this.#greet();
    else this.#cancel = this.#atMoment(previewAfter ?? DEFAULT_AFTER_MS);
  }

  /** Shows the beginning of an answer, of which no more lines are asked for than that takes; without any, of the text. */
  tell(lines: Iterable<string>, text: string): void {
    if (this.isDismissed) return;
    let answer = "";
    for (const line of lines) {
      answer += ` ${line}`;
      // A character may take two of a text's units.
      if (answer.length > 3 * EXCERPT) break;
    }
    const characters = [...(answer || text).replace(/\s+/g, " ").trim()];
    const excerpt = characters.slice(0, EXCERPT).join("");
    // Not in the middle of a word, where words are apart.
    this.#show(characters.length > EXCERPT ? `${excerpt.replace(/\s\S{0,30}$/, "")}…` : excerpt);
  }

  /** The panel says it all. */
  hide(): void {
    this.#show("");
  }

  dismiss(): void {
    this.#memory.keep({ preview: "dismissed" });
    this.hide();
  }

  /** What was planned is planned anew with the next drawing. */
  stop(): void {
    this.#cancel?.();
    this.#plannedFor = "";
  }

  #atMoment(after: string | number): (() => void) | undefined {
    const cancel = atMoment(after, () => this.#greet());
    if (!cancel) reportAttribute(this.#host, "preview-after", after, MOMENT);
    return cancel ?? this.#atMoment(DEFAULT_AFTER_MS);
  }

  /** Whoever has opened the chat knows it. */
  #greet(): void {
    const { open, preview } = this.#memory.state;
    if (open !== undefined || this.isDismissed) return;
    this.#show(this.#host.preview);
    if (preview === "seen") return;
    this.#memory.keep({ preview: "seen" });
    this.#announcer.say(this.#host.preview);
  }

  #show(text: string): void {
    this.#text = text;
    this.#host.requestUpdate();
  }
}
