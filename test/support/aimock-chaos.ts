import assert from "node:assert/strict";
import type { LLMock } from "@copilotkit/aimock";
import type { Provider } from "../../server/providers/provider.ts";
import { ask, failureOf, open } from "./upstream-conversation.ts";

/** aimock's faults, and the code that each must have; always on, so that every retry meets it too. */
const CHAOS = [
  [{ rateLimitRate: 1 }, "provider_rate_limited"],
  [{ malformedRate: 1 }, "provider_error"],
  [{ disconnectRate: 1 }, "provider_error"],
] as const;

/** Asks "hello" under each fault of aimock's chaos mode: one proper error each. */
export async function assertFaultsAreErrors(mock: LLMock, provider: Provider): Promise<void> {
  for (const [chaos, code] of CHAOS) {
    mock.setChaos(chaos);
    try {
      const failure = failureOf(await ask(open(provider, { message: "hello" })));
      assert.equal(failure.code, code, JSON.stringify(chaos));
    } finally {
      mock.clearChaos();
    }
  }
}
