/** Entry of the page at `/`: the chat, and in a frame (`/?embed=1#key=…`) the key of the site around it. */

import "./chat.ts";

const chat = document.querySelector("agent-chat");
// Behind the `#` of an address, which browsers send to no server.
const key = new URLSearchParams(location.hash.slice(1)).get("key");
if (chat?.embed && key) chat.apiKey = key;
