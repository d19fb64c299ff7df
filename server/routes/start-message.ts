/** Where a message starts, whatever brings it: the agent that serves now reads it by its rules, and answers it. */

import type { ServedAgent } from "../agent/served-agent.ts";
import type { Caller } from "../auth/access.ts";
import { type BodyRules, withBody } from "../http/body.ts";
import type { RequestContext } from "../http/request.ts";
import type { StartedRun, StartOptions } from "../runs/run-registry.ts";
import { visitOf } from "./identity.ts";
import type { Service } from "./service.ts";

/** What is known of a message before it is read. */
type Brought = Pick<StartOptions, "requestId" | "trace" | "memory">;

/** A message that was read, with its sender. */
export type ReadMessage = Omit<StartOptions, keyof Brought | "served"> & { sender: Caller };

export interface StartedMessage extends StartedRun, Pick<ReadMessage, "isStreamed"> {
  /** Whether the run begins a new conversation. */
  isNew: boolean;
  /** Id of the sender, if the agent knows its users. */
  user: string | undefined;
}

/** Starts the run of what `read` gives; where that is no message, nothing is started. @throws ApiError */
export function startMessage(
  { runtime, runs }: Pick<Service, "runtime" | "runs">,
  brought: Brought,
  read: (served: ServedAgent) => Promise<ReadMessage | undefined>,
): Promise<StartedMessage | undefined> {
  return runtime.use(async (served) => {
    const release = brought.memory.share();
    try {
      const message = await read(served);
      if (message === undefined) return undefined;
      const { sender, ...options } = message;
      const { isStreamed, request } = options;
      const started = await runs.start(sender, { ...options, ...brought, served });
      return { ...started, isStreamed, isNew: Object.keys(request.state).length === 0, user: sender.user?.id };
    } finally {
      release();
    }
  });
}

/** Lets the sender of a request in, and reads its body. `undefined`: the client has gone before. @throws ApiError */
export async function readBody<Value>(
  { identity, limits }: Pick<Service, "identity" | "limits">,
  served: ServedAgent,
  context: RequestContext,
  { caller, ...rules }: Pick<BodyRules, "maxBytes" | "memory"> & { caller: Caller },
  read: (body: Buffer, sender: Caller) => Promise<Value>,
): Promise<Value | undefined> {
  const sender = await identity.admitMessage(served, caller, visitOf(context));
  if (context.res.destroyed) return undefined;
  return withBody(context, { ...rules, limits, address: caller.address }, (body) => read(body, sender));
}
