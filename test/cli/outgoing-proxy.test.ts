/** Requests to a model go through the proxy that Node was told to use, however it was told. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { post } from "../support/chat-transports.ts";
import { start } from "../support/command.ts";
import { temporaryProject } from "../support/temporary-project.ts";
import { fixture, startUpstream } from "../support/upstream-server.ts";

const AGENT = "export default { name: 'Mine', model: 'compatible/m' };";

const WAYS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "the environment": { NODE_USE_ENV_PROXY: "1" },
  "an option": { NODE_OPTIONS: "--use-env-proxy" },
};

/** Node has it from 22.21 and 24.5 on. */
const skip = !process.allowedNodeEnvironmentFlags.has("--use-env-proxy") && "this Node knows no proxies";

for (const [way, env] of Object.entries(WAYS)) {
  test(`a model is asked through the proxy that Node is given by ${way}`, { skip }, async (t) => {
    await using proxy = await startUpstream({ body: [fixture("chat-completions/text-and-usage")] });
    const { url } = await start(t, [temporaryProject(t, { "agent.mjs": AGENT })], {
      env: {
        ...env,
        HTTP_PROXY: new URL(proxy.url).origin,
        COMPATIBLE_BASE_URL: "http://model.invalid/v1",
      },
    });
    const answer = await post({ url }, { message: "Hi", stream: false });
    assert.equal(answer.status, 200);
    assert.equal(proxy.calls[0]?.path, "http://model.invalid/v1/chat/completions");
  });
}
