/** Entry of the chat, an ES module: defines the elements. Loading it twice is harmless. */

import { Composer } from "./composer/composer.ts";
import { AgentChat } from "./element/agent-chat.ts";
import { missingParts } from "./loading/missing.ts";
import { definePart } from "./ui/chat-part.ts";

/** Defined by the build of the package, which sites bundle, and nowhere else. */
declare const PARLEY_IN_PACKAGE: true | undefined;

// The server that this file came from; the build puts it into the folder `chunks`. A site's bundle does not know its
// server, and bundlers would take the address for one of their own files.
if (typeof PARLEY_IN_PACKAGE === "undefined") {
  AgentChat.defaultServer = new URL("..", import.meta.url).href;
  missingParts.ownFile = import.meta.url;
}

// The composer comes first, so that the chat finds it when it is drawn.
definePart("agent-chat-composer", Composer);
definePart("agent-chat", AgentChat);
