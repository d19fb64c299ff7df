import type { ToolRenderers } from "parley-agent/widget";
import "parley-agent/widget/react";
import { useState } from "react";
import { createRoot } from "react-dom/client";

function Weather({ city, celsius }: { city: string; celsius: number }) {
  const [isMetric, setMetric] = useState(true);
  const degrees = isMetric ? `${celsius} °C` : `${Math.round(celsius * 1.8 + 32)} °F`;
  return <button onClick={() => setMetric(!isMetric)}>{`${city}: ${degrees}`}</button>;
}

const toolRenderers: ToolRenderers = {
  get_weather({ status, output }) {
    if (status !== "completed" || !output) return undefined; // the usual row
    const node = document.createElement("div");
    createRoot(node).render(<Weather {...JSON.parse(output)} />);
    return node;
  },
};

export default function Help() {
  return (
    <agent-chat
      server="https://chat.example.com"
      toolRenderers={toolRenderers}
      onagent-chat-done={({ text }) => console.log(text)}
    />
  );
}
