import "../support/dom.ts";
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { html, render } from "lit";
import { en } from "../../widget/i18n/strings.ts";
import { Announcer } from "../../widget/ui/controllers/announcer.ts";
import { spokenTexts } from "../../widget/ui/controllers/answer-announcer.ts";
import { stopClock } from "../support/stopped-clock.ts";

/** An announcer, and its current text. */
function announcer(t: TestContext) {
  const clock = stopClock(t);
  const root = document.createElement("div");
  const voice = new Announcer({
    addController() {},
    removeController() {},
    requestUpdate() {},
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
    [...spokenTexts([root, drawn(html`<p>More.</p>`)], en)],
    ["Result", "Pong came back.", "one", "two", "x()", "1 2", "More."],
  );
});

test("what is said stays until it is heard, and an answer without a word does not cut it off", (t) => {
  const { voice, clock, polite } = announcer(t);
  const lines = Array.from({ length: 120 }, (_, index) => `Line ${index}.`);
  voice.say(...lines);
  voice.say();
  clock.tick(999);
  assert.deepEqual(polite(), lines);
  clock.tick(1);
  assert.deepEqual(polite(), []);
});

test("a long answer is said a piece at a time, and what is said meanwhile comes at once", (t) => {
  const { voice, clock, polite } = announcer(t);
  const lines = Array.from({ length: 2_000 }, (_, index) => `This is line ${index} of a long answer.`);
  voice.sayAll(lines);
  const first = polite();
  assert.ok(first.length > 10 && first.length < 600, `${first.length} lines at once`);
  voice.say("Saved.");
  assert.deepEqual(polite(), [...first, "Saved."]);
  const heard = [...first];
  while (heard.length < lines.length) {
    clock.tick(1_001);
    heard.push(...polite());
  }
  assert.deepEqual(heard, lines);
});

test("an alert keeps back nothing that is still to be said; a later word ends it, or time: shown again it would be said again", (t) => {
  const { voice, clock, polite, urgent } = announcer(t);
  voice.say("Answering…");
  voice.interrupt("It failed.");
  assert.deepEqual([polite(), urgent()], [["Answering…"], ["It failed."]]);
  voice.say("Answering again…");
  assert.deepEqual(urgent(), []);
  voice.interrupt("It failed.");
  clock.tick(1_000);
  assert.deepEqual(urgent(), []);
});

test("what is taken back is not said any more", (t) => {
  const { voice, polite } = announcer(t);
  voice.say("Too late.");
  voice.clear();
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
    const { voice, polite } = announcer(t);
    voice.say(line);
    assert.deepEqual(polite(), sentences);
  });
}
