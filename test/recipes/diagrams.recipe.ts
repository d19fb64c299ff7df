/** The diagrams of docs/customize.md, with their package, which npm run test:recipes installs. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { build } from "esbuild";
import type { AgentChat } from "../../widget/element/agent-chat.ts";
import { openChat, watchAddresses } from "../browser/chat-page.ts";
import { launchBrowser } from "../support/browser.ts";
import { codeBlocks, readMarkdown } from "../support/markdown-file.ts";
import { say } from "../support/scripted-provider.ts";
import type { Cleanup } from "../support/start-server.ts";
import { temporaryProject } from "../support/temporary-project.ts";
import { twice } from "../support/twice.ts";

const RECIPE = codeBlocks(readMarkdown("docs/customize.md")).find(({ text }) => text.startsWith("// diagrams.js\n"));

const folder = temporaryProject({ after } as Cleanup, { "diagrams.js": RECIPE?.text ?? "" });
for (const name of ["package.json", "package-lock.json"])
  cpSync(join("test/recipes/diagrams", name), join(folder, name));
await twice(() => execFileSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: folder }));
const { outputFiles } = await build({
  entryPoints: [join(folder, "diagrams.js")],
  bundle: true,
  format: "esm",
  minify: true,
  write: false,
});
const browser = await launchBrowser({ after });

const ANSWER = `A flow:

\`\`\`mermaid
graph LR
  A["<script>alert(1)</script>"] --> B{Paid?}
  B -->|yes| C[Ship]
\`\`\`

And one that is none:

\`\`\`mermaid
this is no diagram
\`\`\`

End.
`;

test("the recipe for diagrams draws them as images under our own page's policy, in both themes, and asks nobody for anything", async (t) => {
  const expectedComplaints = /a renderer failed for this block/;
  const {
    page,
    server,
    answer,
    say: type,
    answered,
  } = await openChat(t, browser, { turns: [[say(ANSWER)]], expectedComplaints });
  const contentType = "text/javascript";
  await page.route("**/diagrams.js", (route) => route.fulfill({ contentType, body: outputFiles[0]?.text ?? "" }));
  const { requests } = watchAddresses(page);
  await page.locator("agent-chat").evaluate((element) => {
    const address = "/diagrams.js";
    (element as AgentChat).renderers = {
      async mermaid(...block) {
        return (await import(address)).draw(...block);
      },
    };
  });
  await type("Show it");
  await answered();
  const image = answer.getByRole("img", { name: /graph LR/ });
  const pixel = () =>
    image.evaluate((drawn: HTMLImageElement) => {
      const context = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d");
      context?.drawImage(drawn, 0, 0);
      return [drawn.naturalWidth > 200, [...(context?.getImageData(0, 0, 1, 1).data ?? [])].slice(0, 3)];
    });
  assert.deepEqual(await pixel(), [true, [255, 255, 255]]);
  const light = await image.getAttribute("src");
  assert.match(`${light}`, /^blob:/);
  await answer.locator("code").getByText("this is no diagram").waitFor();
  assert.equal(await answer.locator("pre").count(), 1);
  await page.emulateMedia({ colorScheme: "dark" });
  await answer.locator(`img:not([src="${light}"])`).waitFor();
  assert.deepEqual(await pixel(), [true, [17, 17, 19]]);
  assert.deepEqual(
    requests.filter((url) => !url.startsWith(server.url) && !url.startsWith("blob:")),
    [],
  );
});
