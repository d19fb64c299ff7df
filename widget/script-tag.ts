/** The `<script>` that loaded this file says where the server is, and the key in `data-key`. */

/** Reads a script tag; `undefined` is what a module sees, and means the page's own server. */
export function readScriptTag(script: unknown): { server: string; key: string } {
  if (!(script instanceof HTMLScriptElement) || script.src === "") {
    return { server: new URL("/", document.baseURI).href, key: "" };
  }
  // The folder of the script, so that a server behind a path prefix is found too.
  const server = new URL(".", script.src).href;
  return { server, key: script.dataset.key?.trim() ?? "" };
}

/** Read at once: `document.currentScript` is gone as soon as the script has run. */
export const scriptTag = readScriptTag(document.currentScript);
