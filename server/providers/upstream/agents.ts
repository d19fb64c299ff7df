import { Agent, type AgentOptions } from "node:http";

/**
 * How long a connection that nobody uses is kept, in milliseconds, where its server does not say less. Node keeps its own
 * for five seconds: who writes slower than that would wait for a new one, over TLS for three round trips, with each message.
 * Short enough for what stands between and forgets connections that are quiet, which mostly is minutes.
 */
const IDLE_CONNECTION_MS = 60_000;

const options: AgentOptions = {
  keepAlive: true,
  // The one that was used last is the one that is least likely to be closed by now.
  scheduling: "lifo",
  timeout: IDLE_CONNECTION_MS,
  // What Node's own agents do from Node 24.5 on; earlier ones ignore it.
  ...(process.env.NODE_USE_ENV_PROXY === "1" ? { proxyEnv: process.env } : {}),
};

/** For `http:`. */
export const httpAgent = new Agent(options);

let secure: Promise<Agent> | undefined;

/** For `https:`. Loaded with the first request, as what a start must not wait for. */
export function httpsAgent(): Promise<Agent> {
  secure ??= import("node:https").then((https) => new https.Agent(options));
  return secure;
}
