/** Entry of `/widget.js`: defines the elements, and adds a launcher to pages that place no chat themselves. */

import { addLauncher } from "./agent-chat-launcher.ts";
import { defineElements } from "./define.ts";
import { onceParsed, scriptTag } from "./script-tag.ts";

if (defineElements()) {
  onceParsed(() => addLauncher(scriptTag));
}
