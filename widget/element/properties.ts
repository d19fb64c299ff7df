/**
 * How the properties of the two elements behave: their attributes, and the values that they take. What their types are
 * and what they mean says `public-types.ts`, against which `tsc` holds these tables. Those of the launcher alone are in
 * `launcher/properties.ts`.
 */

import type { PropertyDeclaration } from "lit";
import type { ChatProperties, SharedProperties } from "./public-types.ts";

export interface Row<Value = unknown> {
  /**
   * Default: a text. `switch` is on or `off`, or unset: then it is as the agent's owner wants it. `words` is a list with spaces between, or the first of the choices alone; `time` a number of
   * milliseconds, or `null`; `color` one of CSS. `object` has no attribute.
   */
  readonly kind?: "boolean" | "color" | "object" | "switch" | "time" | "words";
  /** Name of its attribute, where that is not the name of the property; `false` if it has none. */
  readonly attribute?: string | false;
  /** The first one is the default. */
  readonly choices?: readonly Value[];
  /** Whether style sheets ask for it, so that the attribute follows the property of `<agent-chat>`. */
  readonly reflect?: true;
}

/** `lang` and `dir` are the browser's own. */
export type RowsOf<Properties> = {
  readonly [Name in Exclude<keyof Properties, "lang" | "dir">]: Row<Properties[Name]>;
};
export type Rows = Readonly<Record<string, Row>>;

/** The launcher hands these on to its chat. */
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

/** `PURE`: the greeting leaves it out. */
export const CHAT: Rows = /* @__PURE__ */ Object.assign({}, SHARED, CHAT_ONLY);

/** The name of the attribute, if it has one. */
export function attributeOf(name: string, { kind, attribute }: Row): string | undefined {
  return kind === "object" || attribute === false ? undefined : (attribute ?? name);
}

/**
 * For Lit's `static properties` of `<agent-chat>`. An object's attribute is watched to warn of it. A default is not
 * reflected (`useDefault`): a framework that takes over what its server has rendered would find an attribute too many.
 */
export function litProperties(): Record<string, PropertyDeclaration> {
  const rows = Object.entries(CHAT).map(([name, row]) => {
    const type = row.kind === "boolean" ? Boolean : String;
    const attribute = attributeOf(name, row) ?? name.toLowerCase();
    const { reflect = false } = row;
    // Also to set the same again has a meaning.
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

/** The value of a new element, and the one that takes the place of a wrong value. */
export function initialValue({ kind, choices }: Row): unknown {
  if (choices) return choices[0];
  if (kind === "boolean") return false;
  if (kind === "time") return null;
  return kind === "object" || kind === "switch" ? undefined : "";
}

/** Whether a property takes a value. Without one its attribute was removed, or a framework has none: that is no mistake. */
export function isValid({ kind, choices }: Row, value: unknown): boolean {
  const text = String(value);
  if (kind === "time") return /^\d{1,9}$/.test(text);
  if (kind === "color") return CSS.supports("color", text);
  const words = kind === "words" ? text.match(/\S+/g) : [text];
  return !choices || !!words?.every((it) => choices.includes(it));
}
