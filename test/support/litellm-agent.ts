/** A project whose model is behind a LiteLLM proxy, and the command that serves it. */

import type { ModelSettings } from "../../server/providers/provider.ts";
import { type ChatMessage, type Outcome, send, type TransportName } from "./chat-transports.ts";
import { start } from "./command.ts";
import { openLifetime } from "./litellm-cleanup.ts";
import type { LiteLlm } from "./litellm-proxy.ts";
import type { Cleanup } from "./start-server.ts";
import { temporaryProject } from "./temporary-project.ts";

const WEATHER = { Lima: "mild", Oslo: "cold", Cairo: "hot" };

/** An agent with one tool, which is told to think, unless `settings` says otherwise. */
export function weatherProject(
  t: Cleanup,
  model: string,
  settings: ModelSettings = { reasoningEffort: "low" },
): string {
  return temporaryProject(t, {
    "agent.ts": `
      import { defineAgent, tool } from "parley-agent";
      const weather: Record<string, string> = ${JSON.stringify(WEATHER)};
      export default defineAgent({
        name: "Weather",
        model: "litellm/${model}",
        instructions: "Use the tool.",
        ...${JSON.stringify(settings)},
        tools: [tool({
          name: "get_weather",
          description: "Weather of a city.",
          parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
          execute: ({ city }) => \`It is \${weather[String(city)]} in \${city}.\`,
        })],
      });`,
  });
}

/** Starts the command, sends it one message and stops it: nothing but the state outlives this. */
export async function askOnce(
  project: string,
  { url, key }: LiteLlm,
  transport: TransportName,
  message: ChatMessage,
): Promise<Outcome> {
  const t = openLifetime();
  try {
    const env = { LITELLM_BASE_URL: url, LITELLM_API_KEY: key };
    return await send[transport](t, await start(t, [project], { env }), message);
  } finally {
    await t.end();
  }
}

/** What a client saw of a run, in order, with deltas joined and without ids and times. */
export function seen({ events }: Outcome): unknown[] {
  const list: [type: string, ...data: unknown[]][] = [];
  for (const event of events) {
    const last = list.at(-1);
    if (event.type === "tool_call") {
      list.push([event.type, event.data.tool, JSON.parse(event.data.arguments)]);
    } else if (event.type === "tool_result") {
      list.push([event.type, event.data.output, event.data.status]);
    } else if (last?.[0] === event.type) {
      last[1] = `${last[1]}${event.data}`;
    } else {
      list.push([event.type, event.data]);
    }
  }
  return list;
}
