/** Each documented CSS variable changes what it claims, including in parts that render late. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { ApiError } from "../../server/protocol/errors.ts";
import { canCopy, openChat } from "../browser/chat-page.ts";
import { launchBrowser } from "../support/browser.ts";
import { readMarkdown, tableRows } from "../support/markdown-file.ts";
import { call, fail, say, think } from "../support/scripted-provider.ts";
import { echo } from "../support/test-tools.ts";

const browser = await launchBrowser({ after });

const VARIABLES = tableRows(readMarkdown("docs/customize.md"), "variable").map(([name = ""]) => name);

const ANSWER = `[A link](https://example.org), \`code\`, a [x]

> a quote

| A |
|---|
| 1 |

\`\`\`ts
// a comment
class Shop extends Place { sum(a: number) { return "text" + a + 12; } }
\`\`\`

\`\`\`yaml
key: value
\`\`\`

\`\`\`diff
+ more
- less
\`\`\`
`;

/** A value to set, and the computed value that should result. */
function sampleOf(name: string): [value: string, found: string] {
  if (name.includes("-font")) return ["Tokenia", "Tokenia"];
  if (name.endsWith("-radius")) return ["33px", "33px"];
  // Includes the gutters of a wide window.
  if (name.endsWith("-column")) return ["543px", "591px"];
  return ["rgb(1, 2, 3)", "rgb(1, 2, 3)"];
}

test("each variable of the document changes how something looks, and taken away it is as before", async (t) => {
  const chat = await openChat(t, browser, {
    agent: { tools: [echo] },
    turns: [
      [think("Hm."), call("c1", "echo", { text: "ping" })],
      [say(ANSWER)],
      [fail(new ApiError("provider_error", "The model is ill."))],
    ],
    browser: { reducedMotion: "reduce" },
  });
  await chat.say("Everything");
  await chat.answer.getByText("a quote").waitFor();
  await chat.send.waitFor();
  await chat.say("Fail");
  await chat.retry.waitFor();
  // Shows the field's own border; later, the connection's notice.
  await chat.input.blur();
  // Waits for lazy parts, which could not load without a network.
  await chat.page.waitForFunction(() => CSS.highlights.has("agent-chat-deleted"));
  await canCopy(chat.page);
  await chat.page.context().setOffline(true);
  await chat.page.locator('[part="connection"]').waitFor();
  const cases = VARIABLES.map((name) => [name, ...sampleOf(name)] as const);
  assert.ok(cases.length > 25);
  const seen = await chat.page.locator("agent-chat").evaluate((host: HTMLElement, cases) => {
    const roles = [...CSS.highlights.keys()].map((name) => `::highlight(${name})`);
    const elements = [host, ...(host.shadowRoot?.querySelectorAll("*") ?? [])];
    return cases.map(([name, value, expected]) => {
      const found = ["", value, ""].map((now) => {
        host.style.setProperty(name, now);
        const looks = elements.flatMap((element) => {
          const pseudos = element.matches(".markdown pre code") ? roles : [];
          return [null, "::before", "::after", "::placeholder", ...pseudos].map((pseudo) => {
            const look = getComputedStyle(element, pseudo);
            const { color, background, border, borderRadius, fontFamily, inlineSize } = look;
            return [color, background, border, borderRadius, fontFamily, inlineSize].join();
          });
        });
        return looks.filter((look) => look.includes(expected)).length;
      });
      return { name, before: found[0], isChanged: (found[1] ?? 0) > 0, afterwards: found[2] };
    });
  }, cases);
  assert.deepEqual(
    seen,
    VARIABLES.map((name) => ({ name, before: 0, isChanged: true, afterwards: 0 })),
  );
});
