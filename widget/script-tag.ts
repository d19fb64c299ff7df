/**
 * The `<script>` that loaded this file says where the server is, in `data-key` the key, and in `data-launcher="none"` that
 * the page places the chat itself, however late.
 */

export interface ScriptTag {
  readonly server: string;
  readonly key: string;
  readonly wantsLauncher: boolean;
}

/** Reads a script tag; `undefined` is what a module sees, and means the page's own server. */
export function readScriptTag(script: unknown): ScriptTag {
  if (!(script instanceof HTMLScriptElement) || script.src === "") {
    return { server: new URL("/", document.baseURI).href, key: "", wantsLauncher: true };
  }
  const { key = "", launcher } = script.dataset;
  // The folder of the script, so that a server behind a path prefix is found too.
  const server = new URL(".", script.src).href;
  return { server, key: key.trim(), wantsLauncher: launcher !== "none" };
}

/** Read at once: `document.currentScript` is gone as soon as the script has run. */
export const scriptTag = readScriptTag(document.currentScript);
