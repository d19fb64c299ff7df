/** What `<agent-chat>` and its launcher have in common: language, theme and the other levers of look and conduct. */

import { LitElement, type PropertyDeclarations, type PropertyValues } from "lit";
import { CHOICES, checkChoice, reportAttribute } from "./attribute-checks.ts";
import { Language } from "./language.ts";
import { loadChunksFrom } from "./lazy-chunk.ts";
import { scriptTag } from "./script-tag.ts";
import { noteSkips } from "./skip-notes.ts";
import type { StepMode } from "./step-modes.ts";
import type { StringsOverride } from "./strings.ts";

export abstract class ChatElement extends LitElement {
  static override properties: PropertyDeclarations = {
    server: {},
    theme: { reflect: true },
    accent: {},
    density: { reflect: true },
    corners: { reflect: true },
    strings: { attribute: false },
    persist: {},
    thinking: {},
    tools: {},
    actions: { reflect: true },
    feedback: { type: Boolean },
    disclaimer: {},
  };

  server = scriptTag.server;
  theme: "auto" | "light" | "dark" = "auto";
  accent = "";
  density: "normal" | "compact" | "spacious" = "normal";
  corners: "round" | "soft" | "sharp" = "round";
  strings: StringsOverride | undefined;
  persist: "session" | "none" = "session";
  thinking: StepMode = "auto";
  tools: StepMode = "auto";
  actions = "all";
  feedback = false;
  disclaimer = "";

  /** @internal */
  readonly language = new Language(this, () => this.requestUpdate());
  /** For this element alone: its `style` belongs to the site. */
  readonly #sheet = new CSSStyleSheet();
  #wasDrawn = false;

  override connectedCallback(): void {
    loadChunksFrom(this.server);
    this.language.connect();
    super.connectedCallback();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.language.disconnect();
  }

  protected override createRenderRoot(): HTMLElement | DocumentFragment {
    const root = super.createRenderRoot();
    noteSkips(root);
    this.#sheet.replaceSync(":host{}");
    if (root instanceof ShadowRoot) root.adoptedStyleSheets.push(this.#sheet);
    return root;
  }

  /** The first drawing waits for the language. */
  protected override async scheduleUpdate(): Promise<void> {
    if (!this.#wasDrawn) await this.language.ready;
    this.#wasDrawn = true;
    super.scheduleUpdate();
  }

  protected override updated(_changed: PropertyValues<this>): void {
    const { direction } = this.language;
    const root = this.renderRoot.querySelector<HTMLElement>("[lang]");
    // For `:dir()`, which does not know the direction of style sheets. Where it is written again, although it is the same,
    // browsers style all that is inside anew: a long answer with each frame.
    if (root && root.dir !== direction) root.dir = direction;
  }

  protected override willUpdate(changed: PropertyValues<this>): void {
    // An attribute that was taken away, or a value that a framework does not have.
    this.server ||= scriptTag.server;
    for (const [name, words] of Object.entries(CHOICES)) checkChoice(this, name, words);
    if (changed.has("strings")) this.language.override(this.strings);
    this.language.use();
    const { style } = this.#sheet.cssRules[0] as CSSStyleRule;
    // Which side is the end: a launcher stands there, and all that is inside follows.
    const { direction } = this.language;
    if (style.direction !== direction) style.setProperty("direction", direction, "important");
    if (!changed.has("accent")) return;
    const valid = CSS.supports("color", this.accent);
    if (this.accent && !valid) reportAttribute(this, "accent", this.accent, "a CSS colour");
    style.setProperty("--_accent", valid ? this.accent : "");
  }
}
