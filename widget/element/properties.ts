/**
 * How the properties of the two elements behave: their attributes and their allowed values. Types and meanings are in
 * `public-types.ts`, against which `tsc` checks these tables. Properties of the launcher alone are in
 * `launcher/properties.ts`.
 */

import type { PropertyDeclaration } from "lit";
import type { ChatProperties, SharedProperties } from "./public-types.ts";

export interface Row<Value = unknown> {
  /**
   * Default: a text. `switch`: on, `off`, or unset (the agent's owner decides). `words`: choices separated by spaces.
   * `time`: milliseconds or `null`. `color`: a CSS colour. `object`: has no attribute.
   */
  readonly kind?: "boolean" | "color" | "object" | "switch" | "time" | "words";
  /** Name of the attribute, if it differs from that of the property; `false` if there is none. */
  readonly attribute?: string | false;
  /** The first one is the default. */
  readonly choices?: readonly Value[];
  /** Whether the property of `<agent-chat>` is reflected to its attribute, because style sheets select by that. */
  readonly reflect?: true;
}

/** Without `lang` and `dir`, which every element has from the browser. */
export type RowsOf<Properties> = {
  readonly [Name in Exclude<keyof Properties, "lang" | "dir">]: Row<Properties[Name]>;
};
export type Rows = Readonly<Record<string, Row>>;

/** Properties that the launcher passes on to its chat. */
export const SHARED: RowsOf<SharedProperties> = {
  server: {},
  apiKey: { attribute: "api-key" },
  userToken: { kind: "object" },
  metadata: { kind: "object" },
  theme: { choices: ["auto", "light", "dark"], reflect: true },
  accent: { kind: "color" },
  density: { choices: ["normal", "compact", "spacious"], reflect: true },
  corners: { choices: ["round", "soft", "sharp"], reflect: true },
  persist: { choices: ["session", "none"] },
  follow: { choices: ["question", "end"] },
  thinking: { choices: ["auto", "open", "closed", "hidden"] },
  tools: { choices: ["auto", "open", "closed", "hidden", "titles"] },
  actions: { kind: "words", choices: ["all", "none", "copy", "retry", "edit", "code", "table"], reflect: true },
  disclaimer: {},
  conversations: { kind: "switch" },
  feedback: { kind: "switch" },
  strings: { kind: "object" },
  renderers: { kind: "object" },
  toolRenderers: { kind: "object" },
  composerActions: { kind: "object" },
  messageActions: { kind: "object" },
  messageHeader: { kind: "object" },
};

const CHAT_ONLY: RowsOf<Omit<ChatProperties, keyof SharedProperties>> = {
  headingLevel: { attribute: "heading-level", choices: ["auto", "2", "3", "4", "5"] },
  page: { kind: "boolean", reflect: true },
  embed: { kind: "boolean", reflect: true },
};

/** `PURE`: lets the build leave it out of the launcher's `greeting.ts`. */
export const CHAT: Rows = /* @__PURE__ */ Object.assign({}, SHARED, CHAT_ONLY);

/** The name of the attribute, if it has one. */
export function attributeOf(name: string, { kind, attribute }: Row): string | undefined {
  return kind === "object" || attribute === false ? undefined : (attribute ?? name);
}

/**
 * Lit's `static properties` of `<agent-chat>`. Attributes of objects are observed only to warn of them. Defaults are
 * not reflected (`useDefault`): a framework that hydrates HTML of its server would find an extra attribute.
 */
export function litProperties(): Record<string, PropertyDeclaration> {
  const rows = Object.entries(CHAT).map(([name, row]) => {
    const type = row.kind === "boolean" ? Boolean : String;
    const attribute = attributeOf(name, row) ?? name.toLowerCase();
    const { reflect = false } = row;
    // Setting the same value again has a meaning, too.
    const again = name === "userToken" && { hasChanged: () => true };
    return [
      name,
      { attribute, reflect, useDefault: reflect, type, ...again, ...(row.kind === "switch" && { converter }) },
    ];
  });
  return Object.fromEntries(rows);
}

const converter = { fromAttribute: (text: string | null) => (text === null ? undefined : text !== "off") };

/** The values of a new `<agent-chat>`. */
export function initialValues(): object {
  return Object.fromEntries(Object.entries(CHAT).map(([name, row]) => [name, initialValue(row)]));
}

/** The value in a new element, which also replaces a wrong value. */
export function initialValue({ kind, choices }: Row): unknown {
  if (choices) return choices[0];
  if (kind === "boolean") return false;
  if (kind === "time") return null;
  return kind === "object" || kind === "switch" ? undefined : "";
}

/** Whether a property accepts a value. Callers do not warn of an empty one: its attribute may have been removed. */
export function isValid({ kind, choices }: Row, value: unknown): boolean {
  const text = String(value);
  if (kind === "time") return /^\d{1,9}$/.test(text);
  if (kind === "color") return CSS.supports("color", text);
  const words = kind === "words" ? text.match(/\S+/g) : [text];
  return !choices || !!words?.every((it) => choices.includes(it));
}
