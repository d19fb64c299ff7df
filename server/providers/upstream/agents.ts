import { Agent, type AgentOptions, globalAgent } from "node:http";

/**
 * How long a connection that nobody uses is kept, in milliseconds, where its server does not say less. Node keeps its own
 * for five seconds: who writes slower than that would wait for a new one, over TLS for three round trips, with each message.
 * Short enough for what stands between and forgets connections that are quiet, which mostly is minutes.
 */
const IDLE_CONNECTION_MS = 60_000;

/** Node has it from 22.21 and 24.5 on, its types for Node 20 do not. */
interface NodesAgent {
  readonly options?: { readonly proxyEnv?: object };
}

/** Whether Node's own agents use the proxy of the environment: Node can be told so in several ways. */
function usesProxy({ options }: NodesAgent): boolean {
  return process.env.NODE_USE_ENV_PROXY === "1" || options?.proxyEnv !== undefined;
}

const options: AgentOptions = {
  keepAlive: true,
  // The one that was used last is the one that is least likely to be closed by now.
  scheduling: "lifo",
  timeout: IDLE_CONNECTION_MS,
  ...(usesProxy(globalAgent as NodesAgent) ? { proxyEnv: process.env } : {}),
};

/** For `http:`. */
export const httpAgent = new Agent(options);

let secure: Promise<Agent> | undefined;

/** For `https:`. Loaded with the first request, as what a start must not wait for. */
export function httpsAgent(): Promise<Agent> {
  secure ??= import("node:https").then((https) => new https.Agent(options));
  return secure;
}
