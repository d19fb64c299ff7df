/** A process that is blocked by a tool for a long time. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { post } from "../support/chat-transports.ts";
import { start } from "../support/command.ts";
import { within } from "../support/deadline.ts";
import { temporaryProject } from "../support/temporary-project.ts";

const PROJECT = {
  "agent.ts": `
    const block = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
    // What it has found blocks for two more seconds when it is written down.
    const tool = (name, ms, timeoutMs = 30000) => ({
      name, timeoutMs, description: "Blocks.", parameters: { type: "object" },
      execute: async () => (name === "heavy" && (await null), block(ms), { toJSON: () => block(2000) }),
    });
    export default { name: "Acme", model: "demo", tools: [tool("short", 8000), { ...tool("worded", 0), done: () => block(8000) }, tool("heavy", 60000), tool("patient", 34000, 60000)] };`,
};

const MAX_MS = 60_000;

describe("a tool that blocks the process", { concurrency: true }, () => {
  test("ends it after 30 seconds, and the last record names the tool", async (t) => {
    const { command, url } = await start(t, [temporaryProject(t, PROJECT)]);
    void post({ url }, { message: "Please heavy", stream: false }).catch(() => {});
    const { code, stderr } = await within(command.ended, "the end of the command", MAX_MS);
    assert.notEqual(code, 0);
    assert.match(stderr, /The tool heavy has blocked the process for 5 s\. .*kill -9 \d+ ends it/);
    assert.match(stderr, /Parley stops because the tool heavy has blocked the process for \d+ s\.[^\n]*\n$/);
  });

  for (const [title, tool, env, isNamed] of [
    ["may do so for as long as its timeoutMs", "patient", {}, true],
    ["is named while it makes words for people, too", "worded", {}, true],
    ["is not named while a debugger may hold it", "short", { NODE_OPTIONS: "--inspect=127.0.0.1:0" }, false],
  ] as const) {
    test(title, async (t) => {
      const { command, url } = await start(t, [temporaryProject(t, PROJECT)], { env });
      void post({ url }, { message: `Please ${tool}`, stream: false }).catch(() => {});
      await command.printed("stderr", /"tools":1/, MAX_MS);
      assert.equal(command.stderr.includes(`The tool ${tool} has blocked`), isNamed);
      command.kill("SIGTERM");
      assert.equal((await command.end()).code, 0);
    });
  }
});
