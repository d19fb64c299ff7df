/** What the endpoints work with. */

import { type Config, hasKeys } from "./config.ts";
import type { Runs } from "./create-runs.ts";
import { RequestMemoryBudget } from "./limits/request-memory.ts";
import type { Metrics } from "./observe/metrics.ts";
import type { Observer } from "./observer.ts";
import { frameAncestors } from "./origins.ts";
import type { ChatRules } from "./routes/parse-chat.ts";
import type { Service } from "./routes/service.ts";
import { SiteFiles } from "./routes/site-files.ts";
import type { AgentServerOptions, ServerParts } from "./server-options.ts";

/** Who runs, and who is told of it. */
interface ServiceParts extends Runs {
  readonly observer: Observer;
  readonly metrics: Metrics | undefined;
}

export function createService(
  { provider, config, publicFolder, parseWorker }: AgentServerOptions,
  current: () => Config,
  { admission, large, directory, gatherMetrics }: ServerParts,
  { runner, state, hub, observer, metrics }: ServiceParts,
): Service {
  const rules = (): ChatRules => ({
    state: state(),
    attachments: {
      maxCount: current().maxAttachments,
      mediaTypes: provider.mediaTypes,
      label: provider.label,
    },
    limits: current().message,
  });
  const memory = new RequestMemoryBudget(config.maxRequestBytesTotal);
  return {
    runner,
    rules,
    authRequired: () => hasKeys(current().keys),
    bodies: { limit: config.maxBodyBytes, large, minRate: config.minUploadRate },
    memory,
    intake: { large, memory, messageMs: config.times.body, minRate: config.minUploadRate },
    parseWorker,
    admission,
    keepAliveMs: config.times.keepAlive,
    sendMs: config.times.send,
    files: new SiteFiles(publicFolder, runner.agent.name),
    frameAncestors: () => frameAncestors(current().origins),
    metrics: metrics && (async () => gatherMetrics(() => metrics.render())),
    refused: (code) => observer.error(code),
    runs: directory(hub),
  };
}
