import { randomUUID } from "node:crypto";

/**
 * A new id. Node makes it of 15 pieces that stay pieces, each an object, for as long as somebody keeps the text;
 * asking for a character of it joins them.
 */
export function newId(): string {
  const id = randomUUID();
  id.charCodeAt(0);
  return id;
}
