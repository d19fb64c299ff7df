/** Requests to a model go through the proxy that the environment or the project's `.env` names. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { post } from "../support/chat-transports.ts";
import { start } from "../support/command.ts";
import { temporaryProject } from "../support/temporary-project.ts";
import { fixture, startUpstream } from "../support/upstream-server.ts";

const AGENT = "export default { name: 'Mine', model: 'compatible/m' };";

const answer = () => ({ body: [fixture("chat-completions/text-and-usage")] });

for (const where of ["the environment", "the project's .env"] as const) {
  test(`a model is asked through the proxy of ${where}`, async (t) => {
    await using proxy = await startUpstream(answer());
    const named = { HTTP_PROXY: new URL(proxy.url).origin };
    const dotEnv = where === "the environment" ? "" : `HTTP_PROXY=${named.HTTP_PROXY}\n`;
    const { url } = await start(t, [temporaryProject(t, { "agent.mjs": AGENT, ".env": dotEnv })], {
      env: { ...(dotEnv === "" ? named : {}), COMPATIBLE_BASE_URL: "http://model.invalid/v1" },
    });
    const { status } = await post({ url }, { message: "Hi", stream: false });
    assert.equal(status, 200);
    assert.equal(proxy.calls[0]?.path, "http://model.invalid/v1/chat/completions");
  });
}

for (const [what, exception] of [
  ["a model on this machine", {}],
  ["every host where NO_PROXY says so", { NO_PROXY: "*" }],
] as const) {
  test(`${what} is asked directly`, async (t) => {
    await using proxy = await startUpstream(answer());
    await using upstream = await startUpstream(answer());
    const { url } = await start(t, [temporaryProject(t, { "agent.mjs": AGENT })], {
      env: { HTTP_PROXY: new URL(proxy.url).origin, COMPATIBLE_BASE_URL: upstream.url, ...exception },
    });
    const { status } = await post({ url }, { message: "Hi", stream: false });
    assert.equal(status, 200);
    assert.equal(proxy.calls.length, 0);
    assert.equal(upstream.calls.length, 1);
  });
}
