/** Entry of the chat, an ES module: defines the elements. Loading it twice is harmless. */

import { Composer } from "./composer/composer.ts";
import { AgentChat } from "./element/agent-chat.ts";
import { missingParts } from "./loading/missing.ts";

/** Put here by the build of the package, which sites bundle, and nowhere else. */
declare const PARLEY_IN_PACKAGE: true | undefined;

/** The parts come first, so that the chat finds them when it is drawn. */
const elements: Record<string, CustomElementConstructor> = {
  "agent-chat-composer": Composer,
  "agent-chat": AgentChat,
};

// The server that this file came from; the build puts it into the folder `chunks`. A site's bundle does not know it, and
// bundlers would take the address for a file of theirs.
if (typeof PARLEY_IN_PACKAGE === "undefined") {
  AgentChat.defaultServer = new URL("..", import.meta.url).href;
  missingParts.ownFile = import.meta.url;
}

for (const [name, element] of Object.entries(elements)) {
  if (!customElements.get(name)) customElements.define(name, element);
}
