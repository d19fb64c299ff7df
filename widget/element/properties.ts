/**
 * THE table of the properties of `<agent-chat>` and its launcher. Their attributes, checks and types, the custom
 * elements manifest, the types of `public-types.ts` and the tables of `docs/widget.md` (written by `npm run docs`)
 * come from here.
 */

import type { PropertyDeclaration } from "lit";
import type { StringsOverride } from "../i18n/strings.ts";
import type { BlockRenderers } from "../markdown/renderers.ts";
import type { ComposerAction, ToolRenderers } from "../ui/extensions.ts";

/** A property of `<agent-chat>`, of the launcher, or of both: then the launcher hands it on to its chat. */
type Owner = "chat" | "launcher" | "both";

export interface Row {
  readonly of: Owner;
  /**
   * `words` is a list with spaces between, or the first of the choices alone. `moment` is a number of milliseconds or
   * one of the words of the launcher. `object` has no attribute. `inherited` is one that all elements have.
   */
  readonly kind: "text" | "boolean" | "choice" | "words" | "moment" | "object" | "inherited";
  /** Name of its attribute, where that is not the name of the property. */
  readonly attribute?: string;
  /** For `choice` and `words`. The first one is the default. */
  readonly choices?: readonly string[];
  /** Whether style sheets ask for it, so that the attribute follows the property. */
  readonly reflect?: true;
}

const STEP_MODES = ["auto", "open", "closed", "hidden"] as const;

export const PROPERTIES = {
  server: { of: "both", kind: "text" },
  apiKey: { of: "both", kind: "text", attribute: "api-key" },
  page: { of: "chat", kind: "boolean", reflect: true },
  embed: { of: "chat", kind: "boolean", reflect: true },
  position: {
    of: "launcher",
    kind: "choice",
    choices: ["bottom-end", "bottom-start", "top-end", "top-start"],
    reflect: true,
  },
  icon: { of: "launcher", kind: "choice", choices: ["chat", "spark", "question"] },
  size: { of: "launcher", kind: "choice", choices: ["medium", "small", "large"], reflect: true },
  label: { of: "launcher", kind: "text" },
  autoOpen: { of: "launcher", kind: "moment", attribute: "auto-open" },
  preview: { of: "launcher", kind: "text" },
  previewAfter: { of: "launcher", kind: "moment", attribute: "preview-after" },
  theme: { of: "both", kind: "choice", choices: ["auto", "light", "dark"], reflect: true },
  accent: { of: "both", kind: "text" },
  density: { of: "both", kind: "choice", choices: ["normal", "compact", "spacious"], reflect: true },
  corners: { of: "both", kind: "choice", choices: ["round", "soft", "sharp"], reflect: true },
  lang: { of: "both", kind: "inherited" },
  dir: { of: "both", kind: "inherited" },
  persist: { of: "both", kind: "choice", choices: ["session", "none"] },
  follow: { of: "both", kind: "choice", choices: ["question", "end"] },
  thinking: { of: "both", kind: "choice", choices: STEP_MODES },
  tools: { of: "both", kind: "choice", choices: STEP_MODES },
  actions: {
    of: "both",
    kind: "words",
    choices: ["all", "none", "copy", "retry", "edit", "code", "table"],
    reflect: true,
  },
  feedback: { of: "both", kind: "boolean" },
  disclaimer: { of: "both", kind: "text" },
  strings: { of: "both", kind: "object" },
  renderers: { of: "both", kind: "object" },
  toolRenderers: { of: "both", kind: "object" },
  composerActions: { of: "both", kind: "object" },
} as const satisfies Record<string, Row>;

type Table = typeof PROPERTIES;

export type PropertyName = keyof Table;

export interface Documentation {
  /** One sentence, for editors. */
  readonly doc: string;
  /** What the documentation says further, as Markdown. */
  readonly more?: string;
  /** The TypeScript type of an `object`. */
  readonly type?: string;
}

/** What is said about them. Apart, so that no page loads it: the build leaves out what nothing uses. */
export const DOCUMENTATION: Readonly<Record<PropertyName, Documentation>> = {
  server: { doc: "Base URL of the server, with its path if it has one. Default: where the script was loaded from." },
  apiKey: {
    doc: "The site's key. Anyone can read it in the page's source, so use a widget key. It is never stored.",
  },
  page: { doc: "Fills the viewport." },
  embed: { doc: "Leaves out the title and borders, for a frame that has its own." },
  position: { doc: "The corner. `end` is the right side in languages that run from left to right." },
  icon: {
    doc: "What the button shows. An image of your own goes into the slot `launcher-icon`.",
    more: "A URL is refused.",
  },
  size: { doc: "Size of the button: 56, 48 or 64 pixels." },
  label: { doc: "A few words beside the icon. Screen readers read them as the name of the button." },
  autoOpen: {
    doc: "Opens by itself at a [moment](#preview-and-opening-by-itself).",
    more: "Once per session, without moving the focus, and never on a small screen.",
  },
  preview: { doc: "A few words in a bubble beside the closed button." },
  previewAfter: { doc: "The [moment](#preview-and-opening-by-itself) when the bubble appears. Default: `3000`." },
  theme: {
    doc: "`auto` follows the CSS `color-scheme` around the element until the user chooses.",
    more: "Their choice is stored, and applies to all chats of your site with the same `theme`.",
  },
  accent: {
    doc: "Any CSS colour, including `light-dark()`, instead of the blue.",
    more: "Text and icons on it are black or white, whichever is easier to read.",
  },
  density: { doc: "Space between messages and size of the text." },
  corners: { doc: "How round the corners are." },
  lang: {
    doc: "Language of the texts. Default: the nearest `lang` around the element, then the browser's.",
    more: "See [Languages](#languages).",
  },
  dir: { doc: "`ltr` or `rtl`. Default: the nearest `dir` around the element, or the direction of the language." },
  persist: {
    doc: "`session` keeps the conversation in this tab across reloads and pages of the same site; `none` does not. Files are never kept.",
  },
  follow: { doc: "What stays in view while an answer is written: the question at the top, or the end of the answer." },
  thinking: {
    doc: "Thinking. `auto`: open while it streams, closed afterwards. `open`, `closed`: at first, until the user decides. `hidden`: not shown.",
    more: "Hidden thinking is not exported either.",
  },
  tools: {
    doc: "Tool calls, with the same values; `auto` means closed.",
    more: "Hidden calls are not announced to screen readers either.",
  },
  actions: {
    doc: "What users can do with messages: `all`, `none`, or a list of words separated by spaces.",
    more: "`copy` an answer, `retry` (answer again), `edit` a message, copy `code`, copy a `table` as Markdown or CSV. After a failure users can always try again.",
  },
  feedback: {
    doc: "Shows thumbs on answers; a rating fires `agent-chat-feedback`.",
    more: "Off by default, because ratings go nowhere unless your page listens: see [Feedback](#feedback).",
  },
  disclaimer: {
    doc: "A sentence below the composer, instead of the agent's `chat.disclaimer`.",
    more: 'For example: "Answers may be wrong."',
  },
  strings: {
    doc: "Your own texts instead of the built-in ones.",
    more: "See [Languages](#languages).",
    type: "StringsOverride | undefined",
  },
  renderers: {
    doc: "Draw blocks of an answer yourself, by the language of the code fence or by delimiter.",
    more: "See [Blocks of your own](#blocks-of-your-own).",
    type: "BlockRenderers | undefined",
  },
  toolRenderers: {
    doc: "Draw tool calls yourself, by the name of the tool.",
    more: "See [Tool calls of your own](#tool-calls-of-your-own).",
    type: "ToolRenderers | undefined",
  },
  composerActions: {
    doc: "Buttons beside the text field.",
    more: "See [Buttons in the composer](#buttons-in-the-composer).",
    type: "readonly ComposerAction[] | undefined",
  },
};

/** As a table of rows of one type, for everything that walks through it. */
export const ROWS = Object.entries(PROPERTIES) as readonly (readonly [PropertyName, Row])[];

/** The rows of one of the elements. */
export function rowsOf(owner: "chat" | "launcher"): typeof ROWS {
  return ROWS.filter(([, { of }]) => of === owner || of === "both");
}

interface ObjectTypes {
  strings: StringsOverride | undefined;
  renderers: BlockRenderers | undefined;
  toolRenderers: ToolRenderers | undefined;
  composerActions: readonly ComposerAction[] | undefined;
}

type TypeOf<Name extends PropertyName> = Name extends keyof ObjectTypes
  ? ObjectTypes[Name]
  : Table[Name] extends { kind: "boolean" }
    ? boolean
    : Table[Name] extends { kind: "moment" }
      ? number | string | null
      : Table[Name] extends { kind: "choice"; choices: readonly (infer Choice)[] }
        ? Choice
        : string;

/** The properties that the table declares of an element; `lang` and `dir` are the browser's. */
export type PropertiesOf<Element extends "chat" | "launcher"> = {
  -readonly [Name in PropertyName as Table[Name]["kind"] extends "inherited"
    ? never
    : Table[Name]["of"] extends Element | "both"
      ? Name
      : never]: TypeOf<Name>;
};

/** The name of the attribute, if it has one. The launcher's key has none, which would be in the page a second time. */
export function attributeOf(owner: "chat" | "launcher", name: PropertyName): string | undefined {
  const row: Row = PROPERTIES[name];
  if (row.kind === "object" || (owner === "launcher" && name === "apiKey")) return undefined;
  return row.attribute ?? name;
}

/** For Lit's `static properties` of `<agent-chat>`. */
export function litProperties(): Record<string, PropertyDeclaration> {
  const rows = rowsOf("chat").filter(([, { kind }]) => kind !== "inherited");
  return Object.fromEntries(
    rows.map(([name, { kind, reflect = false }]) => [
      name,
      { attribute: attributeOf("chat", name) ?? false, reflect, type: kind === "boolean" ? Boolean : String },
    ]),
  );
}

/** The values of a new `<agent-chat>`. */
export function initialValues(): PropertiesOf<"chat"> {
  const rows = rowsOf("chat").filter(([, { kind }]) => kind !== "inherited");
  return Object.fromEntries(rows.map(([name, row]) => [name, initialValue(row)])) as PropertiesOf<"chat">;
}

/** The value of a new element, and the one that takes the place of a wrong value. */
export function initialValue({ kind, choices }: Row): unknown {
  if (choices) return choices[0];
  if (kind === "boolean") return false;
  if (kind === "moment") return null;
  return kind === "object" ? undefined : "";
}

/** Whether a value is one that the property takes. Without choices every value is. */
function isValid({ kind, choices }: Row, value: unknown): boolean {
  if (!choices) return true;
  if (kind !== "words") return choices.includes(String(value));
  const words = String(value ?? "").match(/\S+/g) ?? [];
  return words.length > 0 && words.every((word) => choices.includes(word));
}

/**
 * Puts the initial value in the place of a wrong one, and warns the page's author; its visitors must not suffer from
 * it.
 */
export function checkProperty(element: Element, name: PropertyName): void {
  const row: Row = PROPERTIES[name];
  const value: unknown = Reflect.get(element, name);
  if (isValid(row, value)) return;
  // Without a value the attribute was removed, or a framework has none: that is no mistake.
  if (value)
    warnOfValue(element, name, value, `${row.kind === "words" ? "words out of" : "one of"} ${row.choices?.join(", ")}`);
  Reflect.set(element, name, initialValue(row));
}

/** Warns the page's author. */
export function warnOfValue(element: Element, name: string, value: unknown, expected: string): void {
  console.warn(`<${element.localName}> ${name} must be ${expected}, not "${String(value)}"`);
}
