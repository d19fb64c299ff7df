import type { Agent } from "./agent/define.ts";
import { type Config, hasKeys } from "./config.ts";
import type { KeyKind } from "./http/caller.ts";
import type { Log } from "./log.ts";
import { memoryAdvice } from "./memory-defaults.ts";
import { isLoopbackHost } from "./origins.ts";

export interface Announced {
  version: string;
  agent: Pick<Agent, "name" | "agent" | "model" | "fallbacks">;
  config: Pick<Config, "keys" | "host" | "workers" | "maxBodyBytes" | "maxRequestBytesTotal">;
  url: string;
  log: Pick<Log, "warning">;
}

/** The text of the start. The URL stands alone on the last line, for people to click and scripts to read. */
export function announce({ version, agent, config, url, log }: Announced): void {
  const kinds = (Object.keys(config.keys) as KeyKind[]).filter((kind) => config.keys[kind].length > 0);
  print(`Parley ${version}
  name   ${agent.name}
  agent  ${agent.agent}
  model  ${[agent.model, ...agent.fallbacks].join(", else ")}
  keys   ${kinds.length > 0 ? kinds.join(", ") : "none: whoever reaches this address can chat"}`);
  if (config.workers > 1) print(`  serve  ${config.workers} workers`);
  if (!hasKeys(config.keys) && !isLoopbackHost(config.host)) {
    log.warning(
      `${config.host} can be reached from other machines and no key is set. Set PARLEY_API_KEY, PARLEY_CHAT_KEY or PARLEY_WIDGET_KEY.`,
    );
  }
  const advice = memoryAdvice(config);
  if (advice !== undefined) log.warning(advice);
  print(url);
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
