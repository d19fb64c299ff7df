import type { AgentRuntime } from "../agent/served-agent.ts";
import type { Settings } from "../config/settings.ts";
import { MAX_ATTACHMENT_BYTES } from "../protocol/attachments.ts";
import type { AgentInfo } from "../protocol/chat.ts";

/** The parts of the service that the information is about. */
export interface InfoSource {
  readonly runtime: AgentRuntime;
  readonly settings: Settings;
}

/** What a user interface needs to know before the first message. The page at `/` has it, too: the same for everybody. */
export function publicInfo({ runtime, settings }: InfoSource): AgentInfo {
  const { agent, provider } = runtime.current;
  const { welcome, disclaimer } = agent;
  return {
    name: agent.name,
    agent: agent.agent,
    auth_required: settings.requiresKey,
    ...(welcome === undefined ? {} : { welcome }),
    suggestions: [...agent.suggestions],
    ...(disclaimer === undefined ? {} : { disclaimer }),
    ...(provider.models === undefined ? {} : { models: [...provider.models] }),
    ...(agent.hooks.onFeedback === undefined ? {} : { feedback: true }),
    ...(agent.ownRun === undefined ? { continue: true } : {}),
    attachments: {
      media_types: [...provider.mediaTypes],
      max_bytes: MAX_ATTACHMENT_BYTES,
      max_count: settings.maxAttachments,
    },
    max_body_bytes: settings.maxBodyBytes,
  };
}
