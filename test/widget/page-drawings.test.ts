import "../support/dom.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ToolBlock } from "../../widget/conversations/messages.ts";
import { PageDrawings } from "../../widget/ui/controllers/page-drawings.ts";

test("a call that is read from storage is not drawn again by the page, and one that has changed is", () => {
  const host = Object.assign(document.createElement("div"), {
    addController() {},
    removeController() {},
    requestUpdate() {},
    updateComplete: Promise.resolve(true),
  });
  const drawings = new PageDrawings(host);
  const drawn: string[] = [];
  const echo = ({ status }: { status: string }) => {
    drawn.push(status);
    return document.createElement("input");
  };
  const context = { toolRenderers: { echo }, messageHeader: undefined, actions: {} };
  const show = (block: Partial<ToolBlock>) => {
    const call = { type: "tool", callId: "c1", tool: "echo", arguments: "{}", status: "running", ...block };
    const message = { id: "m1", role: "assistant", blocks: [call] };
    drawings.update(message as never, context as never);
    return drawings.slotOf("c1");
  };
  const slot = show({});
  assert.equal(show({}), slot);
  assert.deepEqual(drawn, ["running"]);
  show({ status: "completed", output: "ping" });
  assert.deepEqual(drawn, ["running", "completed"]);
});
