import { setTimeout as delay } from "node:timers/promises";
import { type Agent, checkAgent, defineAgent, ToolError, tool } from "../agent/define.ts";

/** Served by `parley start` without a project. */
export function demoAgent(): Agent {
  return checkAgent(
    defineAgent({
      name: "Parley demo",
      agent: "Demo",
      model: "demo",
      instructions: "Show what Parley can do.",
      tools: [weather],
      chat: {
        welcome: "Hello! I am Parley's demo: no key, no network, nothing leaves this machine.",
        suggestions: [
          "What is the weather in Paris and Tokyo?",
          "Show me Markdown with code and a table",
          "Think about it first",
          "Answer slowly",
        ],
      },
    }),
  );
}

const LATITUDES: Readonly<Record<string, number>> = {
  Berlin: 52.52,
  Lagos: 6.524,
  Lima: -12.046,
  London: 51.507,
  Paris: 48.857,
  Sydney: -33.869,
  Tokyo: 35.677,
};

const weather = tool({
  name: "get_weather",
  description: "Typical weather of a city. Invented from its latitude: this is a demo.",
  parameters: {
    type: "object",
    properties: { city: { type: "string", minLength: 1, examples: ["Paris"] } },
    required: ["city"],
    additionalProperties: false,
  },
  async execute({ city }, { signal }) {
    const known = Object.keys(LATITUDES).find((name) => name.toLowerCase() === city.trim().toLowerCase());
    if (known === undefined) {
      throw new ToolError(`The demo does not know ${city}. It knows ${Object.keys(LATITUDES).join(", ")}.`);
    }
    const latitude = Math.abs(LATITUDES[known] ?? 0);
    // So that the tool can be seen at work.
    await delay(400 + Math.round(latitude) * 12, undefined, { signal });
    const celsius = Math.round(30 - latitude / 2.5);
    return { city, celsius, sky: celsius > 20 ? "sunny" : "cloudy", invented: true };
  },
});
