import "../support/dom.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import { LitElement } from "lit";
import { Announcer } from "../../widget/announcer.ts";
import { MarkdownStream } from "../../widget/markdown/markdown-stream.ts";
import { ReplyWatcher } from "../../widget/reply-watcher.ts";
import { emptyReply } from "../../widget/transcript.ts";

class Host extends LitElement {
  readonly thinking = "auto";
  readonly tools = "auto";
}
customElements.define("watched-host", Host);

test("what draws an answer is made ready while the model thinks, a piece in each turn", (t) => {
  const turns: (() => void)[] = [];
  t.mock.method(globalThis, "setTimeout", (turn: () => void) => turns.push(turn));
  const drawn = t.mock.method(MarkdownStream.prototype, "update").mock;
  const host = new Host();
  const watcher = new ReplyWatcher(host, new Announcer(host));
  watcher.watch([emptyReply("m2")]);
  // The message is sent in this turn.
  assert.equal(drawn.callCount(), 0);
  const pieces = turns.splice(0).map((turn) => {
    const before = drawn.callCount();
    turn();
    return drawn.callCount() - before;
  });
  assert.ok(drawn.callCount() > 0);
  assert.ok(pieces.every((count) => count <= 1));
});
