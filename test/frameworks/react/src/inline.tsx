/** Objects that are written in the template: each token brings new ones. */

import "parley-agent/widget/react";
import { useState } from "react";

export function Inline() {
  const [tokens, setTokens] = useState(0);
  const [isNamed, setNamed] = useState(true);
  return (
    <>
      <output>{tokens} tokens</output>
      <button onClick={() => setNamed(false)}>Rename</button>
      <agent-chat
        server="https://chat.example.com"
        strings={{ send: isNamed ? "Ask the shop" : "Ask us" }}
        renderers={{ note: (text) => Object.assign(document.createElement("aside"), { textContent: text }) }}
        toolRenderers={{ get_weather: () => Object.assign(document.createElement("input"), { ariaLabel: "City" }) }}
        onagent-chat-token={() => setTokens((count) => count + 1)}
      />
    </>
  );
}
