/**
 * `npm run test:kills -- SCRIPTS SEED`: users decide on tool calls in any order, twice, in two tabs, from stored states, over
 * connections that break, while processes and Redis are killed. No call may run twice or without approval, and nothing that was
 * done may be missing in the model's request. Default: 100 scripts per scene.
 */

import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { ConversationState, ToolApproval } from "../../server/protocol/chat.ts";
import { closeAll } from "../support/at-end.ts";
import { type Outcome, post, send, TRANSPORTS } from "../support/chat-transports.ts";
import { type StartedCommand, start } from "../support/command.ts";
import { randomFrom } from "../support/random.ts";
import { NO_REDIS, type RedisServer, startRedis } from "../support/redis-server.ts";
import { newRun } from "../support/run-lines.ts";
import { connect } from "../support/socket-client.ts";
import type { Cleanup } from "../support/start-server.ts";
import { CallingUpstream } from "./calling-upstream.ts";

const [SCRIPTS = 100, SEED = randomInt(1_000_000)] = process.argv.slice(2).map(Number);
const AT_ONCE = 8;
const STEPS = 10;

/** `charge` needs approval, `look` does not. Each call records its begin and its end. */
const AGENT = `import { appendFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
const write = (...line) => appendFileSync(process.env.DONE, JSON.stringify(line) + "\\n");
const make = (name, more) => ({
  name,
  description: name,
  parameters: { type: "object", properties: { ms: { type: "number" } }, required: ["ms"] },
  async execute({ ms }, { callId }) {
    write("begin", callId, ms);
    await pause(ms);
    write("end", callId, ms);
    return "done " + callId;
  },
  ...more,
});
const tools = [make("charge", { needsApproval: true, editable: true }), make("look")];
export default { name: "Till", model: process.env.MODEL, maxTurns: 4, tools };
`;

const APIS = [
  (url: string) => ({ MODEL: "compatible/any", COMPATIBLE_BASE_URL: url }),
  (url: string) => ({ MODEL: "openai/gpt-5.2", OPENAI_BASE_URL: url, OPENAI_API_KEY: "sk-of-a-test" }),
];

const ENV = {
  PARLEY_STATE_SECRET: "a secret of many characters",
  PARLEY_LOG: "off",
  PARLEY_RATE_PER_KEY: "0",
  PARLEY_RATE_PER_ADDRESS: "0",
  PARLEY_MAX_RUNS_PER_ADDRESS: "0",
  PARLEY_MAX_SOCKETS_PER_ADDRESS: "0",
  PARLEY_DRAIN_SECONDS: "1",
};

/** Possible errors for a well-formed message if something fails. */
const FAILURES =
  /^(?:approval_used|approval_expired|overloaded|run_lost|run_expired|run_not_found|shutting_down|provider_\w+)$/;

/** One client's state, and the calls that it knows to be done. */
interface Known {
  state: ConversationState;
  done: ReadonlySet<string>;
  approvals: readonly ToolApproval[];
  canContinue: boolean;
}

/** All decisions of a scene's users, per call and question. */
class Decisions {
  /** Approved arguments, by call. */
  readonly yes = new Map<string, Set<string>>();
  /** How often each question was answered, in whatever way. */
  readonly answered = new Map<string, number>();

  answer({ open }: ConversationState): void {
    const nonce = open?.waiting?.nonce ?? "";
    this.answered.set(nonce, (this.answered.get(nonce) ?? 0) + 1);
  }

  approve(id: string, args: string): void {
    this.yes.set(id, (this.yes.get(id) ?? new Set()).add(args));
  }
}

interface Scene {
  t: Cleanup;
  random: () => number;
  servers: StartedCommand[];
  upstream: CallingUpstream;
  decisions: Decisions;
  /** Resolves when a single server is up again. */
  ready?: Promise<unknown>;
  /** Whether nothing is killed in the scene. */
  isCalm: boolean;
  counts: Record<string, number>;
}

type Fault = (
  scene: Scene,
  at: { launch(): Promise<StartedCommand>; redis: RedisServer; dump: string },
) => Promise<void>;

async function killServer(scene: Scene, { launch }: Parameters<Fault>[1]): Promise<void> {
  const { servers, random } = scene;
  const index = Math.floor(random() * servers.length);
  servers[index]?.command.kill(random() < 0.8 ? "SIGKILL" : "SIGTERM");
  const ready = launch();
  if (servers.length === 1) scene.ready = ready;
  servers[index] = await ready;
}

const FAULTS: Record<string, readonly Fault[]> = {
  "nothing is killed": [],
  "the process is killed": [killServer],
  "processes and Redis are killed": [
    killServer,
    async (_scene, { redis, dump }) => {
      await redis.kill();
      rmSync(dump, { force: true });
      await redis.restart();
    },
    async ({ random }, { redis }) => {
      await redis.command("SAVE");
      await pause(random() * 500);
      await redis.kill();
      await redis.restart();
    },
    async ({ random }, { redis }) => {
      redis.freeze();
      await pause(random() * 1500);
      redis.thaw();
    },
  ],
};

const pick = <Item>(items: readonly Item[], random: () => number): Item =>
  items[Math.floor(random() * items.length)] as Item;

// One client.

/** A user's decisions on waiting calls, as a part of a message. */
function decide({ state, approvals }: Known, { random, decisions }: Scene): object {
  const said = approvals.map(({ id, arguments: args }) => {
    if (random() < 0.35) return { id, approved: false, reason: random() < 0.5 ? "No." : undefined };
    const edited = random() < 0.3 ? JSON.stringify({ ms: Math.floor(random() * 60) + 100 }) : undefined;
    decisions.approve(id, edited ?? args);
    return { id, approved: true, arguments: edited };
  });
  decisions.answer(state);
  return { approvals: said, ...(random() < 0.2 ? { message: "And then?" } : {}) };
}

/** Malformed decisions change nothing: valid ones are still possible afterwards. */
async function sendMalformed({ state, approvals }: Known, scene: Scene): Promise<void> {
  const yes = approvals.map(({ id }) => ({ id, approved: true }));
  const wrong = [
    { approvals: yes.slice(1) },
    { approvals: [...yes, ...yes] },
    { approvals: [...yes, { id: "call_0", approved: true }] },
    { approvals: yes, continue: true },
    { continue: true },
    { approvals: yes.map((one) => ({ ...one, arguments: '{"ms":"x"}' })) },
  ];
  const outcome = await tell(scene, { ...pick(wrong, scene.random), state });
  const code = outcome?.last.type === "error" ? outcome.last.code : "none";
  if (outcome !== undefined && code !== "invalid_request") assert.match(code, FAILURES);
}

function nextMessage(known: Known, scene: Scene): object {
  const { random, decisions } = scene;
  const { state, approvals, canContinue } = known;
  if (approvals.length > 0 && random() < 0.85) return decide(known, scene);
  if (approvals.length > 0) decisions.answer(state);
  else if (canContinue && random() < 0.8) return { continue: true };
  return { message: "Go on." };
}

/** Returns `undefined` if the connection was lost. */
async function tell({ t, random, servers, isCalm, ready }: Scene, message: object): Promise<Outcome | undefined> {
  await ready;
  const transport = pick(TRANSPORTS, random);
  try {
    return await send[transport](t, pick(servers, random), message);
  } catch (error) {
    if (isCalm) throw error;
    await pause(100);
    return undefined;
  }
}

/** Sends a message and disconnects, at once or soon. */
async function leave({ t, random, servers }: Scene, message: object): Promise<void> {
  const server = pick(servers, random);
  const ms = random() * 80;
  if (random() < 0.5) {
    const signal = AbortSignal.timeout(Math.ceil(ms));
    await post(server, { ...message, stream: random() < 0.5 }, { signal })
      .then((response) => response.text())
      .catch(() => {});
  } else {
    const client = await connect(t, server.socketUrl).catch(() => undefined);
    client?.send(message);
    await pause(ms);
    if (random() < 0.5) client?.send({ type: "stop" });
    client?.socket.terminate();
  }
}

/** Sends a message once or several times; returns the client's data afterwards. */
async function perform(known: Known, scene: Scene): Promise<Known[]> {
  const { random, counts } = scene;
  const { state } = known;
  if (known.approvals.length > 0 && random() < 0.15) await sendMalformed(known, scene);
  const message = { ...nextMessage(known, scene), state, ...(random() < 0.6 ? { run: newRun() } : {}) };
  const way = random();
  const outcomes: (Outcome | undefined)[] = [];
  if (way < 0.25) {
    await leave(scene, message);
    // With the same run id it is the same run; without one, or with another, it is another message.
    const again = random() < 0.5 ? message : { ...message, run: newRun() };
    if (known.approvals.length > 0) scene.decisions.answer(state);
    outcomes.push(await tell(scene, again));
  } else if (way < 0.45) {
    // Two tabs, one of which may have decided otherwise.
    const other = random() < 0.5 ? { ...message } : { ...nextMessage(known, scene), state };
    if (known.approvals.length > 0) scene.decisions.answer(state);
    outcomes.push(...(await Promise.all([tell(scene, message), tell(scene, other)])));
  } else outcomes.push(await tell(scene, message));
  return outcomes.flatMap((outcome) => {
    const name = outcome === undefined ? "lost" : outcome.last.type === "error" ? outcome.last.code : "answered";
    counts[name] = (counts[name] ?? 0) + 1;
    return outcome === undefined ? [] : learn(outcome, known, scene);
  });
}

/** The client's data after a run; asserts that the state contains all of it. */
function learn({ last, events, toolCalls = [] }: Outcome, { state: before, done }: Known, scene: Scene): Known[] {
  const { upstream, decisions, isCalm } = scene;
  assert.deepEqual(upstream.refused, []);
  const results = events.flatMap((event) => (event.type === "tool_result" ? [event.data] : []));
  const called = [...results, ...(toolCalls as { id: string; status: string }[])];
  const ids = called.filter(({ status }) => status === "completed").map(({ id }) => id);
  const known = new Set([...done, ...ids]);
  if (last.type === "error") {
    if (last.code === "approval_used") assert.ok((decisions.answered.get(before.open?.waiting?.nonce ?? "") ?? 0) > 1);
    assert.match(last.code, isCalm ? /^approval_used$|^run_expired$|^provider_/ : FAILURES, JSON.stringify(last));
    assert.ok(last.continue !== true || last.retryable === false);
  }
  // Without a state, the client continues from the one before, with what it knew then.
  const { state } = last;
  if (state === undefined) {
    assert.ok(last.type === "error" && (ids.length === 0 || last.code === "run_lost"), JSON.stringify(last));
    return [];
  }
  const missing = [...known].filter((id) => !upstream.resultsIn(state).has(id));
  assert.deepEqual(missing, [], `forgotten after ${JSON.stringify(last)}`);
  const approvals = last.type === "done" ? (last.approvals ?? []) : [];
  const isCut = last.type === "done" && ["length", "stopped", "max_turns"].includes(last.finish_reason);
  const hasState = Object.keys(state).length > 0;
  // The state of an error may still wait for decisions.
  if (last.type === "error" && state.open?.waiting !== undefined) return [];
  return [
    {
      state,
      done: known,
      approvals,
      canContinue: hasState && (isCut || (last.type === "error" && last.continue === true)),
    },
  ];
}

async function converse(scene: Scene): Promise<void> {
  const { random } = scene;
  const states: Known[] = [{ state: {}, done: new Set(), approvals: [], canContinue: false }];
  for (let step = 0; step < STEPS; step++) {
    // Sometimes uses an old state, often one that waits for decisions.
    const asking = states.filter(({ approvals }) => approvals.length > 0);
    const kept = pick(random() < 0.7 && asking.length > 0 ? asking : states, random);
    const known = random() < 0.6 ? (states.at(-1) ?? kept) : kept;
    states.push(...(await perform(known, scene)));
  }
}

// Checks what was done in the end.

function checkDone(file: string, { upstream, decisions }: Scene): number {
  const lines: [what: string, id: string, ms: number][] = existsSync(file)
    ? readFileSync(file, "utf8")
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line))
    : [];
  const begun = lines.filter(([what]) => what === "begin");
  const ids = begun.map(([, id]) => id);
  assert.deepEqual(
    ids.filter((id, index) => ids.indexOf(id) !== index),
    [],
    "calls that ran twice",
  );
  for (const [, id, ms] of begun) {
    const call = upstream.calls.get(id);
    assert.ok(call, `${id} was never made`);
    const args = JSON.stringify({ ms });
    if (call.name === "look") assert.equal(call.arguments, args);
    else assert.ok(decisions.yes.get(id)?.has(args), `${id} ran without a yes to ${args}`);
  }
  return begun.length;
}

async function play(name: string, api: number, seed: number): Promise<void> {
  const ends: (() => unknown)[] = [];
  const t = { after: (end: () => unknown) => void ends.unshift(end) } as Cleanup;
  const folder = mkdtempSync(join(tmpdir(), "parley-kills-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "agent.mjs"), AGENT);
  const random = randomFrom(seed);
  const upstream = new CallingUpstream(random);
  const url = await upstream.listen();
  t.after(() => upstream.close());
  try {
    const hasRedis = name.includes("Redis");
    const redis = hasRedis ? await startRedis(t, "--dir", folder) : undefined;
    const done = join(folder, "done.jsonl");
    const env = { ...ENV, ...APIS[api]?.(url), DONE: done, ...(redis && { PARLEY_REDIS_URL: redis.url }) };
    const launch = () => start(t, [folder], { env });
    const servers = await Promise.all(Array.from({ length: hasRedis ? 2 : 1 }, launch));
    const faults = FAULTS[name] ?? [];
    const scene: Scene = {
      t,
      random,
      servers,
      upstream,
      decisions: new Decisions(),
      isCalm: faults.length === 0,
      counts: {},
    };
    let left = SCRIPTS;
    const clients = Array.from({ length: AT_ONCE }, async () => {
      while (left-- > 0) await converse(scene);
    });
    let isOver = false;
    const breaking = async () => {
      let times = 0;
      for (; !isOver && faults.length > 0; times++) {
        await pause(300 + random() * 1200);
        await pick(faults, random)(scene, { launch, redis: redis as RedisServer, dump: join(folder, "dump.rdb") });
      }
      return times;
    };
    const [times] = await Promise.all([
      breaking(),
      Promise.all(clients).finally(() => {
        isOver = true;
      }),
    ]);
    const ran = checkDone(done, scene);
    console.log(`${name}, API ${api}: ${SCRIPTS} scripts, ${times} faults, ${ran} calls ran`, scene.counts);
  } finally {
    await closeAll(ends);
  }
}

console.log(`seed ${SEED}`);
for (const name of Object.keys(FAULTS)) {
  if (name.includes("Redis") && NO_REDIS) console.log(`SKIPPED: ${NO_REDIS}`);
  else for (const api of [0, 1]) await play(name, api, SEED + api);
}
