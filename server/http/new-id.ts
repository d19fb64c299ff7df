import { crypto, isCryptoLoaded } from "../node/crypto.ts";

/**
 * A new id that nobody can guess. Node makes it of 15 pieces that stay pieces, each an object, for as long as somebody keeps
 * the text; asking for a character of it joins them.
 */
export function newId(): string {
  const id = crypto().randomUUID();
  id.charCodeAt(0);
  return id;
}

/** A new id for a request: told apart from all others, but it opens nothing, so whoever asks first waits for no `node:crypto`. */
export function newRequestId(): string {
  if (isCryptoLoaded()) return newId().replaceAll("-", "");
  let id = "";
  for (let words = 0; words < 4; words++) {
    id += (Math.floor(Math.random() * 2 ** 32) + 2 ** 32).toString(16).slice(1);
  }
  return id;
}
