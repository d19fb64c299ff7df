/** The Markdown export: a message's text cannot imitate the export's own structure. */

import "../support/dom.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import { marked, type Token } from "marked";
import type { Message } from "../../widget/conversations/messages.ts";
import { en } from "../../widget/i18n/strings.ts";
import { exportTranscript } from "../../widget/ui/export.ts";
import { randomFrom } from "../support/random.ts";

const context = { strings: en, agent: "Acme", modes: {} } as Parameters<typeof exportTranscript>[2];

function exported(...texts: string[]): Promise<string> {
  const messages = texts.map((text) => ({ role: "assistant", status: "done", blocks: [{ type: "text", text }] }));
  return exportTranscript("markdown", messages as unknown as Message[], context);
}

/** Headings of the level of speakers' names, and elements that would load something, as a Markdown parser sees them. */
function seen(markdown: string): string[] {
  const tokens = marked.lexer(markdown);
  const found = tokens
    .filter((token) => token.type === "heading" && token.depth <= 2)
    .map(({ text }: Token & { text?: string }) => text ?? "");
  marked.walkTokens(tokens, (token: Token) => {
    if (token.type === "image" || token.type === "html") found.push(token.raw);
  });
  return found;
}

const SAID = ["Acme said:", "Acme said:"];

test("no text of a message is read as a speaker's heading, an image or HTML, and no code goes on into the next message", async () => {
  const random = randomFrom(1);
  const pieces =
    "\n|\n|\n\n|a|You said:|## |# |---|===|- |1. |2. |> |   |  | |```|~~~|`|``|\\\\|\\|![x](http://t)|![x][r]|<img src=//t>|<h2>|</h2>|<!--|-->|<b>|*|**|[a](b|)|\t|[r]: //t\n".split(
      "|",
    );
  const texts = Array.from({ length: 5_000 }, () =>
    Array.from({ length: 2 + random() * 14 }, () => pieces[Math.floor(random() * pieces.length)]).join(""),
  );
  texts.push("a | ` | ![x](u) ` |\n|-|-|-|\n", "| a | b |\n|-|-|\n| ` | ![x](u) ` |");
  for (const text of texts) {
    const markdown = await exported(text, text);
    assert.deepEqual(seen(markdown), SAID, `${JSON.stringify(text)} as\n${markdown}`);
  }
});

test("the pictures of a call are counted, which a text cannot show", async () => {
  const image = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } };
  const call = { type: "tool", callId: "1", tool: "draw", arguments: "{}", status: "completed", output: "drawn" };
  const blocks = [{ ...call, images: [image], imagesOmitted: 1 }, call];
  const messages = [{ role: "assistant", status: "done", blocks }] as unknown as Message[];
  const markdown = await exportTranscript("markdown", messages, context);
  assert.deepEqual(markdown.match(/^\d pictures? .*$/gm), ["2 pictures are not shown."]);
  const [answer] = JSON.parse(await exportTranscript("json", messages, context));
  assert.deepEqual(
    answer.blocks.map((it: { pictures?: number }) => it.pictures),
    [2, undefined],
  );
});

test("code, and text without headings, images and HTML, are exported as they are", async () => {
  for (const text of [
    "Run `<b>` and ``![a](b)``:\n\n```html\n<img src=a>\n# no heading\n---\n```\n\n1. One\n   ```sh\n   # two\n   ```\n2. Two",
    "| `<a>` | b |\n|---|---|\n| 1 < 2 | 3 |\n\n---\n\n- [ ] *a* **b** [c](d) $x$\n\n> quote\n\n    indented",
  ]) {
    assert.equal(await exported(text), `## Acme said:\n\n${text}\n`);
  }
  assert.equal(
    await exported("# A\n\n![b](c) <br>\n\n```js\ncut"),
    "## Acme said:\n\n### A\n\n\\![b](c) \\<br>\n\n```js\ncut\n```\n",
  );
});
