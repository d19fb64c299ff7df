/** What `<agent-chat>` and its launcher have in common: language, theme and the other levers of their look. */

import { LitElement, type PropertyDeclarations, type PropertyValues } from "lit";
import { CHOICES, type Choice, checkedChoice, reportAttribute } from "./attribute-checks.ts";
import { Language } from "./language.ts";
import type { StringsOverride } from "./strings.ts";
import type { Theme } from "./theme.ts";

export abstract class ChatElement extends LitElement {
  static override properties: PropertyDeclarations = {
    server: {},
    theme: { reflect: true },
    accent: {},
    density: { reflect: true },
    corners: { reflect: true },
    strings: { attribute: false },
  };

  theme: Theme = "auto";
  accent = "";
  density: Choice<"density"> = "normal";
  corners: Choice<"corners"> = "round";
  strings: StringsOverride | undefined;

  protected readonly language = new Language(this, () => this.requestUpdate());
  readonly #accentSheet = new CSSStyleSheet();
  #wasDrawn = false;

  override connectedCallback(): void {
    this.language.connect();
    super.connectedCallback();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.language.disconnect();
  }

  protected override createRenderRoot(): HTMLElement | DocumentFragment {
    const root = super.createRenderRoot();
    this.#accentSheet.replaceSync(":host{}");
    if (root instanceof ShadowRoot) root.adoptedStyleSheets.push(this.#accentSheet);
    return root;
  }

  /** The first drawing waits for the language; each one reads that of its own element. */
  protected override async scheduleUpdate(): Promise<void> {
    if (!this.#wasDrawn) await this.language.ready;
    this.#wasDrawn = true;
    this.language.use();
    super.scheduleUpdate();
  }

  protected override willUpdate(changed: PropertyValues<this>): void {
    for (const name of Object.keys(CHOICES) as (keyof typeof CHOICES)[]) {
      if (!(changed as Map<string, unknown>).has(name)) continue;
      const value: unknown = Reflect.get(this, name);
      Reflect.set(this, name, checkedChoice(this, name, value));
    }
    if (changed.has("strings")) this.language.override(this.strings);
    if (changed.has("accent")) this.#applyAccent();
  }

  /** In a sheet of its own: the element's `style` belongs to the site. */
  #applyAccent(): void {
    const valid = CSS.supports("color", this.accent);
    if (this.accent && !valid) reportAttribute(this, "accent", this.accent, "a CSS colour");
    const [rule] = this.#accentSheet.cssRules;
    if (rule instanceof CSSStyleRule) {
      rule.style.setProperty("--_accent", valid ? this.accent : "");
    }
  }
}
