/** A LiteLLM proxy whose providers all are one server that says, byte by byte, what a test has scripted. */

import { startGoogleAccount } from "./google-account.ts";
import { installLiteLlm } from "./litellm-install.ts";
import { PROVIDER_ROWS } from "./litellm-provider-rows.ts";
import { type LiteLlm, startLiteLlm } from "./litellm-proxy.ts";
import type { Cleanup } from "./start-server.ts";
import { startUpstream, type UpstreamServer } from "./upstream-server.ts";

export interface LiteLlmUpstream {
  litellm: LiteLlm;
  /** What every provider behind it says, and was told. */
  upstream: UpstreamServer;
}

/** Starts both, with a model for each of `PROVIDER_ROWS`. `version` is Python's. */
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
