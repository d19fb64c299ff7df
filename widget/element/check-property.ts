import { lazy } from "../loading/lazy.ts";
import { CHAT, initialValue, isValid } from "./properties.ts";

const warnings = lazy(() => import("./warnings.ts"));

/** Puts the initial value of `<agent-chat>` in the place of a wrong one. */
export function checkProperty(chat: Element, name: string): void {
  const row = CHAT[name] ?? {};
  const value: unknown = Reflect.get(chat, name);
  // A token is a text, but not one for everybody who can read the page's source.
  const isText =
    row.kind === "object" && typeof value === "string" && (name !== "userToken" || chat.hasAttribute(name));
  if (isValid(row, value) && !isText) return;
  const warn = ({ warnOfText, warnOfValue }: typeof import("./warnings.ts")) =>
    isText ? warnOfText(chat, name, value) : warnOfValue(chat, name, row, value);
  if (isText || value) warnings.load().then(warn, () => undefined);
  Reflect.set(chat, name, initialValue(row));
}
