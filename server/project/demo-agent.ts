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
      tools: [weather, distance],
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

const CITIES: ReadonlyMap<string, { latitude: number; longitude: number }> = new Map([
  ["berlin", { latitude: 52.52, longitude: 13.405 }],
  ["lagos", { latitude: 6.524, longitude: 3.379 }],
  ["lima", { latitude: -12.046, longitude: -77.043 }],
  ["london", { latitude: 51.507, longitude: -0.128 }],
  ["paris", { latitude: 48.857, longitude: 2.352 }],
  ["sydney", { latitude: -33.869, longitude: 151.209 }],
  ["tokyo", { latitude: 35.677, longitude: 139.65 }],
]);

const weather = tool({
  name: "get_weather",
  description: "Typical weather of a city. Invented from its latitude: this is a demo.",
  parameters: cities({ city: "Paris" }),
  async execute({ city }: { city: string }, { signal }) {
    const { latitude } = locate(city);
    // So that the tool can be seen at work.
    await delay(400 + Math.round(Math.abs(latitude)) * 12, undefined, { signal });
    const celsius = Math.round(30 - Math.abs(latitude) / 2.5);
    return { city, celsius, sky: celsius > 20 ? "sunny" : "cloudy", invented: true };
  },
});

const distance = tool({
  name: "measure_distance",
  description: "Great-circle distance between two cities, in kilometres.",
  parameters: cities({ from: "Paris", to: "Tokyo" }),
  execute: ({ from, to }: { from: string; to: string }) => ({
    from,
    to,
    kilometres: greatCircle(locate(from), locate(to)),
  }),
});

/** A JSON Schema of arguments that are cities, each with an example. */
function cities(examples: Readonly<Record<string, string>>) {
  const city = (example: string) => ({ type: "string", minLength: 1, examples: [example] });
  return {
    type: "object",
    properties: Object.fromEntries(Object.entries(examples).map(([name, example]) => [name, city(example)])),
    required: Object.keys(examples),
    additionalProperties: false,
  };
}

function locate(city: string): { latitude: number; longitude: number } {
  const found = CITIES.get(city.trim().toLowerCase());
  if (found !== undefined) return found;
  const known = [...CITIES.keys()].map((name) => name[0]?.toUpperCase() + name.slice(1));
  throw new ToolError(`The demo does not know ${city}. It knows ${known.join(", ")}.`);
}

const EARTH_RADIUS_KM = 6371;

/** Haversine formula. */
function greatCircle(
  from: { latitude: number; longitude: number },
  to: { latitude: number; longitude: number },
): number {
  const radians = (degrees: number) => (degrees * Math.PI) / 180;
  const halfLatitude = Math.sin(radians(to.latitude - from.latitude) / 2) ** 2;
  const halfLongitude = Math.sin(radians(to.longitude - from.longitude) / 2) ** 2;
  const across = Math.cos(radians(from.latitude)) * Math.cos(radians(to.latitude)) * halfLongitude;
  return Math.round(2 * EARTH_RADIUS_KM * Math.asin(Math.sqrt(halfLatitude + across)));
}
