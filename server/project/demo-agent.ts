import { setTimeout as delay } from "node:timers/promises";
import { type Agent, checkAgent, defineAgent } from "../agent/define.ts";
import { ToolError, tool } from "../agent/tool-definition.ts";

/** Served by `parley start` without a project. */
export function demoAgent(): Agent {
  return checkAgent(
    defineAgent({
      name: "Parley demo",
      agent: "Demo",
      model: "demo",
      instructions: "Show what Parley can do.",
      tools: [weather, daylight, cancelOrder],
      chat: {
        welcome: "Hello! I am Parley's demo: no key, no network, nothing leaves this machine.",
        suggestions: [
          "How are weather and daylight in Paris and Tokyo?",
          "Show me a table, code, a formula and a footnote",
          "Think about it first",
          "Cancel my order 1007",
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

/** Parameters of both tools. */
const CITY = {
  type: "object",
  properties: { city: { type: "string", minLength: 1, examples: ["Paris"] } },
  required: ["city"],
  additionalProperties: false,
} as const;

/** How far a city is from the equator, in degrees; after a moment, so that the tool can be seen at work. */
async function latitudeOf(city: string, signal: AbortSignal): Promise<number> {
  const known = Object.keys(LATITUDES).find((name) => name.toLowerCase() === city.trim().toLowerCase());
  if (known === undefined) {
    throw new ToolError(`The demo does not know ${city}. It knows ${Object.keys(LATITUDES).join(", ")}.`);
  }
  const latitude = Math.abs(LATITUDES[known] ?? 0);
  await delay(400 + Math.round(latitude) * 12, undefined, { signal });
  return latitude;
}

const weather = tool({
  name: "get_weather",
  title: "Weather",
  running: ({ city }) => `Looking up the weather in ${city}`,
  done: ({ city }) => `Weather in ${city}`,
  description: "Typical weather of a city. Invented from its latitude: this is a demo.",
  parameters: CITY,
  async execute({ city }, { signal }) {
    const celsius = Math.round(30 - (await latitudeOf(city, signal)) / 2.5);
    return { city, celsius, sky: celsius > 20 ? "sunny" : "cloudy", invented: true };
  },
});

const daylight = tool({
  name: "get_daylight",
  title: "Daylight",
  running: ({ city }) => `Working out the daylight in ${city}`,
  done: ({ city }) => `Daylight in ${city}`,
  description: "Length of the longest day of a city, from its latitude.",
  parameters: CITY,
  async execute({ city }, { signal }) {
    const [latitude, tilt] = [await latitudeOf(city, signal), 23.44].map((degrees) => (degrees * Math.PI) / 180);
    const hours = (24 / Math.PI) * Math.acos(-Math.tan(latitude ?? 0) * Math.tan(tilt ?? 0));
    return { city, longest_day_hours: Math.round(hours * 10) / 10 };
  },
});

const cancelOrder = tool({
  name: "cancel_order",
  description: "Cancels an order. Nothing is ordered here: this is a demo.",
  parameters: {
    type: "object",
    properties: { order: { type: "string", minLength: 1, maxLength: 40, examples: ["1007"] } },
    required: ["order"],
    additionalProperties: false,
  },
  needsApproval: true,
  approvalText: ({ order }) => `Cancel order ${order}? This cannot be undone.`,
  danger: true,
  execute: ({ order }) => ({ order, cancelled: true, invented: true }),
});
