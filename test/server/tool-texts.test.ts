/** `toolTexts`: what people read of tools that run in an agent that is written elsewhere. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { checkAgent } from "../../server/agent/define.ts";
import type { ToolApproval } from "../../server/protocol/chat.ts";
import { send } from "../support/chat-transports.ts";
import { type Cleanup, startServer } from "../support/start-server.ts";

const call = (id: string, tool: string, args: object = { order: "A1" }) => ({
  type: "tool_call",
  data: { id, tool, arguments: args },
});
const result = (id: string, output: unknown, status = "completed") => ({
  type: "tool_result",
  data: { id, output, status },
});

function serve(t: Cleanup, toolTexts: object, run: (...input: never[]) => unknown) {
  return startServer(t, { agent: { model: undefined, run, toolTexts } as never });
}

test("the author's words stand in the rows of tools that run elsewhere", async (t) => {
  const toolTexts = {
    look: {
      title: { en: "Order", de: "Bestellung" },
      running: ({ order }: { order: string }) => `Looking for ${order}`,
      done: ({ order }: { order: string }, { status }: { status: string }) => `${order} is ${status}`,
    },
    pay: { title: "Payment", running: () => "", done: () => "Paid" },
  };
  const server = await serve(t, toolTexts, async function* () {
    yield call("c1", "look");
    yield result("c1", { status: "on its way" });
    yield call("c2", "pay", {});
    yield result("c2", "no card", "failed");
    yield call("c3", "other");
    yield result("c3", "x");
    yield "Here it is.";
  });
  const { events, last } = await send.sse(t, server, { message: "Hi" });
  const rows = events.flatMap((event) =>
    event.type === "tool_call" || event.type === "tool_result" ? [[event.data.tool, event.data.title]] : [],
  );
  assert.deepEqual(rows, [
    ["look", "Looking for A1"],
    ["look", "A1 is on its way"],
    ["pay", "Payment"],
    ["pay", "Payment"],
    ["other", undefined],
    ["other", undefined],
  ]);
  assert.equal(last.data, "Here it is.");
  assert.match(server.log.join(""), /running of the tool \\"pay\\" failed/);
});

test("what a tool that runs elsewhere hides leaves neither in events nor in the state, and the agent gets it back", async (t) => {
  const inputs: { exchange: unknown }[] = [];
  const toolTexts = { look: { title: "Order", expose: "title" }, spy: { expose: "none" } };
  const server = await serve(t, toolTexts, async function* (input: { exchange: unknown }) {
    inputs.push(input);
    if (inputs.length > 1) {
      yield "Done.";
      return;
    }
    yield call("c1", "look", { order: "secret-1" });
    yield result("c1", "secret-2");
    yield "Well.";
    yield call("c2", "spy", { order: "secret-3" });
    yield result("c2", "secret-4");
    yield "So.";
    yield { type: "tool_approval", data: { id: "c3", tool: "cancel", arguments: { order: "A2" }, text: "Sure?" } };
  } as never);
  const { events, last } = await send.sse(t, server, { message: "Hi" });
  // What nobody has listed is not hidden: a person would decide on what they cannot read.
  const [{ tool, arguments: args } = {} as ToolApproval] = (last.type === "done" && last.approvals) || [];
  assert.deepEqual([tool, args], ["cancel", '{"order":"A2"}']);
  assert.doesNotMatch(JSON.stringify([events, last]), /secret-|spy|look/);
  const titles = events.flatMap((event) => (event.type === "tool_call" ? [event.data.tool] : []));
  assert.deepEqual(titles, ["Order"]);
  assert.equal(events.flatMap((event) => (event.type === "token" ? [event.data] : [])).join(""), "Well.\n\nSo.");
  const approvals = [{ id: "c3", approved: true }];
  const second = await send.json(t, server, { approvals, state: last.type === "done" ? last.state : {} });
  assert.equal(second.last.data, "Done.");
  assert.match(JSON.stringify(inputs[1]?.exchange), /secret-1.*secret-2.*secret-3.*secret-4/);
});

test("the author's question is asked in place of the framework's, with the tool's title and its danger", async (t) => {
  const decided: unknown[] = [];
  const toolTexts = {
    cancel: {
      title: "Cancel an order",
      danger: true,
      approvalText: ({ order }: { order: string }) => `Cancel ${order}?`,
    },
    refund: { title: "Refund" },
  };
  const server = await serve(t, toolTexts, async function* ({ ctx }: { ctx: { approvals: object[] } }) {
    decided.push(...ctx.approvals);
    if (ctx.approvals.length > 0) {
      yield "Done.";
      return;
    }
    yield {
      type: "tool_approval",
      data: { id: "cancel-1", tool: "cancel", arguments: { order: "A1" }, text: "Go on?" },
    };
    yield { type: "tool_approval", data: { id: "c2", tool: "refund", arguments: {} } };
    yield { type: "tool_approval", data: { id: "c3", tool: "refund", arguments: {}, text: "Refund it?" } };
  } as never);
  const { last } = await send.sse(t, server, { message: "Hi" });
  assert.ok(last.type === "done" && last.approvals !== undefined);
  assert.deepEqual(
    last.approvals.map(({ tool, title, text, danger }) => [tool, title, text, danger]),
    [
      ["cancel", "Cancel an order", "Cancel A1?", true],
      ["refund", "Refund", 'The assistant wants to use "Refund".', undefined],
      ["refund", "Refund", "Refund it?", undefined],
    ],
  );
  const approvals = last.approvals.map(({ id }) => ({ id, approved: id !== "c2" }));
  const second = await send.sse(t, server, { approvals, state: last.state });
  assert.equal(second.last.data, "Done.");
  assert.deepEqual(
    decided.map((one) => [(one as { id: string }).id, (one as { approved: boolean }).approved]),
    [
      ["cancel-1", true],
      ["c2", false],
      ["c3", true],
    ],
  );
});

const MISTAKES: [agent: object, sentence: RegExp][] = [
  [{ toolTexts: [] }, /^toolTexts must be an object by names of tools/],
  [{ toolTexts: { a: "Title" } }, /^toolTexts must be an object by names of tools/],
  [{ toolTexts: { a: { titel: "A" } } }, /^toolTexts\.a has a field titel, which does nothing\. Did you mean title\?$/],
  [{ toolTexts: { a: { execute() {} } } }, /^toolTexts\.a has a field execute.*The fields are title, running, done/],
  [{ toolTexts: { a: { expose: "title" } } }, /^The tool "a" has expose: "title" and no title/],
  [{ toolTexts: { a: { approvalText: "Sure?" } } }, /^approvalText of the tool "a" must be a function/],
  [{ toolTexts: { a: { danger: 1 } } }, /^danger of the tool "a" must be true or false/],
  [{ run: undefined, model: "demo", toolTexts: {} }, /^toolTexts is for tools that run elsewhere, but there is no run/],
];

test("toolTexts that would do nothing stop the start", () => {
  for (const [fields, message] of MISTAKES) {
    assert.throws(() => checkAgent({ name: "A", run() {}, ...fields }), { name: "ConfigError", message });
  }
});
