/** A project whose model is behind a LiteLLM proxy, and the command that serves it. */

import { createServer } from "node:http";
import type { ModelSettings } from "../../server/providers/provider.ts";
import { type ChatMessage, type Outcome, send, type TransportName } from "./chat-transports.ts";
import { start } from "./command.ts";
import { startGoogleAccount } from "./google-account.ts";
import { listen } from "./listen.ts";
import { PROVIDER_ROWS } from "./litellm-provider-rows.ts";
import { installLiteLlm, type LiteLlm, openLifetime, startLiteLlm } from "./litellm-proxy.ts";
import { passOn } from "./proxy.ts";
import type { Cleanup } from "./start-server.ts";
import { temporaryProject } from "./temporary-project.ts";
import { startUpstream, type UpstreamServer } from "./upstream-server.ts";

const WEATHER = { Lima: "mild", Oslo: "cold", Cairo: "hot" };

/** A project whose agent has one tool; the model thinks unless `settings` says otherwise. */
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

/** Starts the command, sends it one message and stops it: only the state survives. */
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

/** The events of a run in order, with deltas joined and without ids and times. */
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

// Records all requests to a fake provider byte for byte: the fake's own journal drops attachments.

/** A request that reached the provider. */
export interface RecordedCall {
  path: string;
  body: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads into it and fails where it is wrong.
  json: any;
}

export interface Recorder {
  /** Without a slash at the end. */
  readonly url: string;
  /** The requests since the last call of `take`, in order. */
  take(): RecordedCall[];
}

/** `rewrite` changes a body into one that the fake can read; the recording keeps the original body. */
export async function startRecorder(t: Cleanup, target: string, rewrite = (body: string) => body): Promise<Recorder> {
  let calls: RecordedCall[] = [];
  const server = createServer(async (req, res) => {
    const body = Buffer.concat(await req.toArray()).toString("utf8");
    calls.push({ path: req.url ?? "", body, json: body === "" ? undefined : JSON.parse(body) });
    const sent = rewrite(body);
    req.headers["content-length"] = String(Buffer.byteLength(sent));
    passOn(req, res, target).end(sent);
  });
  const url = await listen(t, server);
  return {
    url,
    take: () => {
      const taken = calls;
      calls = [];
      return taken;
    },
  };
}

// A LiteLLM proxy in front of one scripted server that plays all providers.

export interface LiteLlmUpstream {
  litellm: LiteLlm;
  /** The scripted server behind LiteLLM. */
  upstream: UpstreamServer;
}

/** Starts both, with a model for each of `PROVIDER_ROWS`. `version` is the version of Python. */
export async function startLiteLlmUpstream(t: Cleanup, version: string): Promise<LiteLlmUpstream> {
  const upstream = await startUpstream();
  t.after(() => upstream.close());
  const url = new URL(upstream.url).origin;
  const googleCredentials = await startGoogleAccount(t);
  const models = PROVIDER_ROWS.map(({ name, params }) => ({
    model_name: name,
    litellm_params: params({ url, googleCredentials }),
  }));
  const litellm = await startLiteLlm(t, await installLiteLlm(version), models);
  return { litellm, upstream };
}
