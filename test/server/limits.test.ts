/** Time limits of foreign code: a project's functions and other servers. */

import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { Late, within } from "../../server/config/within.ts";
import type { StreamEvent } from "../../server/protocol/events.ts";
import { send } from "../support/chat-transports.ts";
import { gate, turns } from "../support/deadline.ts";
import { call, say } from "../support/scripted-provider.ts";
import { type ServerOptions, startServer, type TestServer } from "../support/start-server.ts";
import { define, throwing } from "../support/test-tools.ts";

const never = () => new Promise<never>(() => {});

const rejectWhenAborted = (signal: AbortSignal) =>
  new Promise<never>((_resolve, reject) =>
    signal.addEventListener("abort", () => setImmediate(reject, "late"), { once: true }),
  );

const WORK: [what: string, work: (signal: AbortSignal) => unknown, ms: number, outcome: unknown][] = [
  ["returns at once", () => "value", 1000, "value"],
  ["resolves in time", async () => "value", 1000, "value"],
  ["throws", throwing("fault"), 1000, "fault"],
  ["rejects", () => Promise.reject("fault"), 1000, "fault"],
  ["never answers", never, 20, new Late(20)],
  ["rejects because it is late", rejectWhenAborted, 20, new Late(20)],
];

for (const [what, work, ms, outcome] of WORK) {
  test(`work that ${what} within its time leaves no timer, listener or rejection behind`, async () => {
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
    const outer = new AbortController();
    const before = timers();
    let own: AbortSignal | undefined;
    const watched = (signal: AbortSignal) => {
      own = signal;
      return work(signal);
    };
    assert.deepEqual(await within(watched, ms, outer.signal).catch((thrown: unknown) => thrown), outcome);
    assert.equal(own?.aborted, outcome instanceof Late);
    assert.deepEqual(
      [getEventListeners(outer.signal, "abort"), getEventListeners(own as AbortSignal, "abort")],
      [[], []],
    );
    // Gives an unhandled rejection time to fail the test.
    await turns();
    assert.equal(timers(), before);
  });
}

test("an abort from outside ends the wait with its reason, aborts the work's signal, and begins no work later", async () => {
  const outer = new AbortController();
  const begun = gate();
  let calls = 0;
  const work = (signal: AbortSignal) => {
    calls += 1;
    begun.open();
    return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(new Error("mine"))));
  };
  const waiting = within(work, 60_000, outer.signal);
  await begun.opened;
  outer.abort(new Error("stopped"));
  await assert.rejects(waiting, /stopped/);
  await assert.rejects(within(work, 60_000, outer.signal), /stopped/);
  await turns();
  assert.equal(calls, 1);
});

test("while the event loop is busy no time-out passes: an answer that is there in the meantime counts", async () => {
  const answer = within(() => new Promise((resolve) => setTimeout(resolve, 10, "value")), 100);
  const until = performance.now() + 200;
  while (performance.now() < until);
  assert.equal(await answer, "value");
});

// A project's functions, by the way in which they fail.

const WAYS: [way: string, fails: () => never][] = [
  ["throws", throwing(new Error("out of order"))],
  ["rejects", (() => Promise.reject("out of order")) as () => never],
  ["never answers", never as () => never],
];

const pay = (more: object) => define("pay", () => "paid", { title: "Payment", timeoutMs: 50, ...more });
const schema = (validate: () => never) => ({
  "~standard": { version: 1, vendor: "own", validate, jsonSchema: { input: () => ({ type: "object" }) } },
});

const FAULT = ["error internal"];
const WITH_TITLE = ["tool_call Payment", "tool_result Payment completed", "done stop"];
const FAILED = ["tool_call Payment", "tool_result Payment failed", "done stop"];
const ASKED = ['tool_approval Payment The assistant wants to use "Payment".', "done approval_required"];

interface Row {
  /** The function's name in the log. */
  name: string;
  /** What the log reports as late; default: `name`. */
  late?: string;
  setup(fails: () => never): ServerOptions;
  /** What a client sees of its run, or of the request that calls the function. */
  seen: string[];
  /** Makes the request that calls the function; returns its status and text. */
  ask?(server: TestServer): Promise<[status: string, text: string]>;
  /** An invalid return value, and what the log says about it. */
  nonsense?: [returned: unknown, said: RegExp];
}

const TEXT = /must return a text/;
const ROWS: Row[] = [
  {
    name: "authenticate",
    setup: (authenticate) => ({ authenticate }),
    seen: FAULT,
    nonsense: ["ada", /authenticate must return a user/],
  },
  {
    name: "onMessage",
    setup: (onMessage) => ({ agent: { onMessage } }),
    seen: FAULT,
    nonsense: ["No.", /onMessage must return nothing/],
  },
  {
    name: "onAnswer",
    setup: (onAnswer) => ({ agent: { onAnswer, tools: [] }, turns: [[say("Done.")]] }),
    seen: FAULT,
    nonsense: ["No.", /onAnswer must return nothing/],
  },
  {
    name: "tools(ctx)",
    setup: (tools) => ({ agent: { tools } }),
    seen: FAULT,
    nonsense: [{}, /tools must be an array/],
  },
  {
    name: "instructions(ctx)",
    setup: (instructions) => ({ agent: { instructions } }),
    seen: FAULT,
    nonsense: [7, /instructions must return a string, but returned number/],
  },
  {
    name: 'needsApproval of the tool "pay"',
    setup: (needsApproval) => ({ agent: { tools: [pay({ needsApproval })] } }),
    seen: ASKED,
    nonsense: ["yes", /must return true or false, but returned string/],
  },
  {
    name: 'approvalText of the tool "pay"',
    setup: (approvalText) => ({ agent: { tools: [pay({ needsApproval: true, approvalText })] } }),
    seen: ASKED,
    nonsense: [7, /must return a string, but returned number/],
  },
  {
    name: 'running of the tool "pay"',
    setup: (running) => ({ agent: { tools: [pay({ running })] } }),
    seen: WITH_TITLE,
    nonsense: [7, TEXT],
  },
  {
    name: 'done of the tool "pay"',
    setup: (done) => ({ agent: { tools: [pay({ done })] } }),
    seen: WITH_TITLE,
    nonsense: [7, TEXT],
  },
  {
    name: 'The tool "pay"',
    setup: (validate) => ({ agent: { tools: [pay({ parameters: schema(validate) })] } }),
    seen: FAILED,
    nonsense: [undefined, /The tool "pay" failed/],
  },
  {
    name: 'tool "pay"',
    late: "their check by its parameters",
    setup: (validate) => ({ agent: { tools: [pay({ parameters: schema(validate), needsApproval: true })] } }),
    seen: FAILED,
    nonsense: [undefined, /The tool "pay" failed/],
  },
  { name: 'The tool "pay"', setup: (execute) => ({ agent: { tools: [pay({ execute })] } }), seen: FAILED },
  { name: "onRunEnd", setup: (onRunEnd) => ({ agent: { onRunEnd, tools: [pay({})] } }), seen: WITH_TITLE },
  {
    name: "onFeedback",
    setup: (onFeedback) => ({ agent: { onFeedback } }),
    seen: ["204"],
    async ask({ url }) {
      const init = { method: "POST", headers: { "content-type": "application/json" } };
      const body = JSON.stringify({ run: "run-of-this-test-0001", rating: "up" });
      const response = await fetch(`${url}/api/feedback`, { ...init, body });
      return [String(response.status), await response.text()];
    },
  },
  { name: "close", setup: (close) => ({ close, agent: { tools: [pay({})] } }), seen: WITH_TITLE },
];

/** The fields of an event that people see; nothing for tokens. */
function seenOf(event: StreamEvent): string[] {
  const { type, data } = event;
  if (type === "token") return [];
  if (type === "error") return [`error ${event.code}`];
  if (type === "done") return [`done ${event.finish_reason}`];
  const { title, text = "", status = "" } = Object(data);
  return [`${type} ${title} ${text || (type === "tool_result" ? status : "")}`.trim()];
}

for (const { name, late = name, setup, seen, ask, nonsense } of ROWS) {
  const returned = nonsense && (() => nonsense[0] as never);
  for (const [way, fails] of returned === undefined ? WAYS : [...WAYS, ["returns nonsense", returned] as const]) {
    const options = setup(fails);
    test(`${name} that ${way}, ${Object.keys(options).join(" and ")}: clients see ${seen.join(", ")}, the log why`, async (t) => {
      const turns = [[call("c1", "pay")], [say("Done.")]];
      const server = await startServer(t, { turns, hookMs: 50, authenticateMs: 50, ...options });
      if (ask === undefined) {
        const { events } = await send.sse(t, server, { message: "Hi" });
        assert.deepEqual(events.flatMap(seenOf), seen);
        assert.doesNotMatch(JSON.stringify(events), /out of order/, "what it threw");
      } else assert.deepEqual(await ask(server), [...seen, ""]);
      await server.close();
      const failures = server.log.map((record) => JSON.parse(record)).filter(({ msg }) => msg === "failure");
      assert.equal(failures.length, 1, JSON.stringify(failures));
      const said = failures[0].error;
      if (way === "returns nonsense") assert.match(said, nonsense?.[1] ?? assert.fail());
      else if (way === "never answers") assert.ok(said.includes(`${late} took longer than 0.05 seconds`), said);
      else assert.match(said, /out of order|authenticate threw something that is no Error/);
      if (name !== "authenticate") assert.ok(said.includes(name), said);
      // Neither of the two belongs to a run.
      if (name !== "authenticate" && name !== "close") assert.match(failures[0].run_id, /^[\w-]{8}$/);
    });
  }
}
