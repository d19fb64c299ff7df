import "../support/dom.ts";
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { html, render } from "lit";
import { Announcer, spokenTexts } from "../../widget/ui/controllers/announcer.ts";
import { stopClock } from "../support/stopped-clock.ts";

/** An announcer, what it says at the moment, and who is told when that is to be drawn. */
function announcer(t: TestContext, onUpdate = () => {}) {
  const clock = stopClock(t);
  const root = document.createElement("div");
  const voice = new Announcer({
    addController() {},
    removeController() {},
    requestUpdate: onUpdate,
    updateComplete: Promise.resolve(true),
  });
  const said = (selector: string) => {
    render(voice.render(), root);
    const texts = [...root.querySelectorAll(selector)].map(({ textContent }) => textContent.trim());
    return texts.filter((text) => text !== "");
  };
  return {
    voice,
    clock,
    polite: () => said("[role=status] p"),
    urgent: () => said("[role=alert]"),
  };
}

function drawn(markup: unknown): HTMLElement {
  const root = document.createElement("div");
  render(markup, root);
  return root;
}

test("what a drawn answer says is a line per block, without buttons", () => {
  const root = drawn(html`
    <h2>Result</h2>
    <p>Pong <strong>came</strong> back.</p>
    <ul><li><p>one</p></li><li><p>two</p></li></ul>
    <div class="code"><button>Copy</button><pre><code>x()</code></pre></div>
    <table><tr><td>1</td><td>2</td></tr></table>
  `);
  assert.deepEqual(
    [...spokenTexts([root, drawn(html`<p>More.</p>`)])],
    ["Result", "Pong came back.", "one", "two", "x()", "1 2", "More."],
  );
});

for (const [what, markup, lastLine] of [
  ["an answer", html`<p>One.</p><p>Two.</p><p>Three.</p>`, "p:last-of-type"],
  ["a section", html`<div class="section"><p>One.</p><p>Two.</p><p>Three.</p></div>`, "p:last-of-type"],
  ["a list", html`<ul><li>One.</li><li>Two.</li><li>Three.</li></ul>`, "li:last-of-type"],
  [
    "a table",
    html`<div class="table"><table><thead><tr><th>One.</th></tr></thead><tbody><tr><td>Two.</td></tr><tr><td>Three.</td></tr></tbody></table></div>`,
    "tr:last-of-type td",
  ],
] as const) {
  test(`${what} is walked through as far as its lines are asked for`, () => {
    const root = drawn(markup);
    const lines = spokenTexts([root]);
    assert.equal(lines.next().value, "One.");
    const last = [...root.querySelectorAll(lastLine)].at(-1);
    assert.ok(last);
    last.textContent = "Changed.";
    assert.deepEqual([...lines], ["Two.", "Changed."]);
  });
}

test("of many lines fifty are read in one turn, and none in the turn that has them said", (t) => {
  let read = 0;
  const turns: number[] = [];
  const { voice, clock, polite } = announcer(t, () => turns.push(read));
  function* lines(): Generator<string> {
    while (read < 120) {
      read += 1;
      yield `Line ${read}.`;
    }
  }
  voice.sayAll(lines());
  assert.equal(read, 0);
  clock.tick(0);
  assert.deepEqual(turns, [50, 100, 120]);
  assert.deepEqual(
    polite(),
    Array.from({ length: 120 }, (_, index) => `Line ${index + 1}.`),
  );
  clock.tick(1_000);
  assert.deepEqual(polite(), []);
});

for (const count of [1, 49, 50, 51, 100]) {
  test(`${count} lines stay until they are heard`, (t) => {
    const { voice, clock, polite } = announcer(t);
    voice.sayAll(Array.from({ length: count }, (_, index) => `Line ${index}.`));
    clock.tick(999);
    assert.equal(polite().length, count);
    clock.tick(1);
    assert.deepEqual(polite(), []);
  });
}

test("an answer without a word does not cut off what was said before it", (t) => {
  const { voice, clock, polite } = announcer(t);
  voice.say("Answering…");
  clock.tick(0);
  voice.sayAll([]);
  clock.tick(999);
  assert.deepEqual(polite(), ["Answering…"]);
  clock.tick(1);
  assert.deepEqual(polite(), []);
});

test("an alert keeps back nothing that is still to be said, and a later word ends it", (t) => {
  const { voice, clock, polite, urgent } = announcer(t);
  voice.say("Answering…");
  voice.interrupt("It failed.");
  clock.tick(0);
  assert.deepEqual([polite(), urgent()], [["Answering…"], ["It failed."]]);
  voice.say("Answering again…");
  clock.tick(0);
  assert.deepEqual(urgent(), []);
});

test("what is taken back is not read on", (t) => {
  const { voice, clock, polite } = announcer(t);
  let isRead = false;
  voice.sayAll(
    (function* () {
      isRead = true;
      yield "Too late.";
    })(),
  );
  voice.clear();
  clock.tick(2_000);
  assert.equal(isRead, false);
  assert.deepEqual(polite(), []);
});

for (const [line, sentences] of [
  ["One. Two! “Three?” Four (see there.) Five…", ["One.", "Two!", "“Three?”", "Four (see there.)", "Five…"]],
  ["It is 3.14, e.g. here.", ["It is 3.14, e.g. here."]],
  ["一つ。二つ！「三つ。」四つ", ["一つ。", "二つ！", "「三つ。」四つ"]],
  ["すごい！！！はい", ["すごい！！！", "はい"]],
  ["“你好。”他说。", ["“你好。”他说。"]],
  ["It takes approx. 5 km.", ["It takes approx. 5 km."]],
  ["سؤال؟ جواب.", ["سؤال؟", "جواب."]],
] as const) {
  test(`a listener can leave "${line}" between its sentences`, (t) => {
    const { voice, clock, polite } = announcer(t);
    voice.say(line);
    clock.tick(0);
    assert.deepEqual(polite(), sentences);
  });
}
