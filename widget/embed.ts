/** Entry of `/widget.js`: defines the elements, and adds a launcher to pages that place no chat themselves. */

import { addLauncher } from "./agent-chat-launcher.ts";
import { defineElements } from "./define.ts";
import { scriptTag } from "./script-tag.ts";

if (defineElements()) {
  const start = () => addLauncher(scriptTag);
  if (document.readyState === "loading") {
    document.addEventListener("DOMContentLoaded", start, { once: true });
  } else {
    start();
  }
}
