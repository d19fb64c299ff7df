/** MCP servers that are programs: they die, freeze and write nonsense, and end with the server. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { setEnvironment } from "../support/at-end.ts";
import { start } from "../support/command.ts";
import { temporaryProject } from "../support/temporary-project.ts";
import { calling, eventually, outputOf, resultsOf, startWith } from "./asking.ts";
import { isAlive, program } from "./programs.ts";

test("a program that was killed between two calls is started again", async (t) => {
  const { definition, pids } = program(t);
  const server = await startWith(t, { own: definition }, { turns: calling(2, "own__pid") });
  const first = Number(await outputOf(t, server));
  process.kill(first, "SIGKILL");
  await eventually(() => !isAlive(first), "the end of the program");
  assert.deepEqual([first, Number(await outputOf(t, server))], pids());
});

test("a call during which the program is killed fails, and is not made again", async (t) => {
  const { definition, pids, calls } = program(t);
  const turns = [...calling(1, "own__hang"), ...calling(1, "own__pid")];
  const server = await startWith(t, { own: definition }, { turns });
  const failing = resultsOf(t, server);
  await eventually(() => calls() === 1, "the call");
  process.kill(pids()[0] ?? 0, "SIGKILL");
  const [result] = await failing;
  assert.equal(result?.status, "failed");
  assert.match(result?.output ?? "", /It may have been carried out/);
  assert.equal(calls(), 1);
  assert.equal(Number(await outputOf(t, server)), pids()[1]);
});

test("a frozen program costs a call its time, and is replaced by another", async (t) => {
  const { definition, pids } = program(t, { timeoutMs: 300 });
  const server = await startWith(t, { own: definition }, { turns: calling(8, "own__pid") });
  const first = Number(await outputOf(t, server));
  process.kill(first, "SIGSTOP");
  assert.equal(await outputOf(t, server), "Timed out after 300 ms.");
  await eventually(() => pids().length === 2, "another program");
  assert.equal(Number(await outputOf(t, server)), pids()[1]);
  await eventually(() => !isAlive(first), "the end of the frozen one");
});

test("a program that says more than answers is understood", async (t) => {
  const { definition } = program(t);
  const server = await startWith(t, { own: definition }, { turns: calling(1, "own__noise") });
  assert.equal(await outputOf(t, server), "after the noise");
});

test("an answer of 100 MB fails, and the next call is answered", async (t) => {
  const { definition } = program(t);
  const server = await startWith(
    t,
    { own: definition },
    { turns: [...calling(1, "own__large"), ...calling(1, "own__noise")] },
  );
  const [result] = await resultsOf(t, server);
  assert.equal(result?.status, "failed");
  assert.equal(await outputOf(t, server), "after the noise");
});

test("a program sees its own environment, and none of the server's", async (t) => {
  setEnvironment(t, { OPENAI_API_KEY: "sk-secret", PARLEY_STATE_SECRET: "x".repeat(32) });
  const { definition } = program(t, { env: { OWN: "yes" } });
  const server = await startWith(t, { own: definition }, { turns: calling(1, "own__env") });
  const { OWN, PATH, ...others } = JSON.parse(await outputOf(t, server));
  assert.equal(OWN, "yes");
  assert.equal(PATH, process.env.PATH);
  const known = ["HOME", "LOGNAME", "SHELL", "TERM", "USER"];
  assert.deepEqual(
    Object.keys(others).filter((name) => !known.includes(name)),
    [],
  );
});

test("a program that is not there is said once, and the agent answers", async (t) => {
  const server = await startWith(t, { own: { command: "no-such-program" } }, { turns: calling(2, "own__pid") });
  for (const _ of [1, 2]) assert.match(await outputOf(t, server), /no tool/i);
  const said = server.log.filter((line) => line.includes("no-such-program"));
  assert.equal(said.length, 1, said.join("\n"));
});

for (const signal of ["SIGTERM", "SIGKILL"] as const) {
  for (const stays of [false, true]) {
    const name = stays ? "that goes on without its input" : "that ends with its input";
    test(`${signal} to the server ends a program ${name}, too`, async (t) => {
      const { definition, pids } = program(t, stays ? { env: { STAYS: "1" } } : {});
      const agent = { name: "Programs", model: "demo", mcp: { own: definition } };
      const folder = temporaryProject(t, { "agent.js": `export default ${JSON.stringify(agent)};\n` });
      const { command } = await start(t, [folder]);
      await eventually(() => pids().length === 1, "the program");
      const [pid = 0] = pids();
      t.after(() => isAlive(pid) && process.kill(pid, "SIGKILL"));
      command.kill(signal);
      await command.end();
      await eventually(() => !isAlive(pid), "the end of the program");
    });
  }
}
