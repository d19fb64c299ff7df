import "../support/dom.ts";
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { newStream } from "../support/markdown.ts";

function mounted(text: string) {
  const root = document.createElement("div");
  document.body.replaceChildren(root);
  const stream = newStream(root);
  stream.update(text, true);
  const click = (selector: string) => root.querySelector<HTMLElement>(selector)?.click();
  return { root, stream, click };
}

/** Resolves when the element's name changes. */
function changed(node: Element | null): Promise<void> {
  return new Promise((resolve) => {
    if (node === null) throw new Error("there is no such element");
    new MutationObserver((_, observer) => {
      observer.disconnect();
      resolve();
    }).observe(node, { attributes: true });
  });
}

function replaceClipboard(t: TestContext, writeText: (text: string) => Promise<void>): void {
  const original = Object.getOwnPropertyDescriptor(navigator, "clipboard");
  Object.defineProperty(navigator, "clipboard", { configurable: true, value: { writeText } });
  t.after(() => {
    if (original) Object.defineProperty(navigator, "clipboard", original);
    else Reflect.deleteProperty(navigator, "clipboard");
  });
}

test("the copy button copies the code and says so, also while more comes in", async (t) => {
  const copied: string[] = [];
  replaceClipboard(t, async (text) => void copied.push(text));
  const { root, stream, click } = mounted("```\nline 1\nline 2\n");
  const button = root.querySelector<HTMLElement>(".copy");
  const said = changed(button);
  click(".copy");
  await said;
  assert.deepEqual(copied, ["line 1\nline 2"]);
  stream.update("```\nline 1\nline 2\nline 3", true);
  assert.equal(root.querySelector(".copy"), button);
  assert.deepEqual([button?.title, button?.getAttribute("aria-label")], ["Copied", "Copied"]);
});

test("a long code block is copied whole", async (t) => {
  const copied: string[] = [];
  replaceClipboard(t, async (text) => void copied.push(text));
  const code = "const value = 42;\n".repeat(1000);
  const { root, click } = mounted(`\`\`\`js\n${code}\`\`\`\n\nend`);
  const said = changed(root.querySelector(".copy"));
  click(".copy");
  await said;
  assert.deepEqual(copied, [code.trimEnd()]);
});

test("copying that is refused says so", async (t) => {
  replaceClipboard(t, () => Promise.reject(new Error("refused")));
  document.execCommand = () => false;
  const { root, click } = mounted("```\nx\n```");
  const said = changed(root.querySelector(".copy"));
  click(".copy");
  await said;
  assert.equal(root.querySelector<HTMLElement>(".copy")?.title, "Copying failed");
  assert.equal(root.querySelector("textarea"), null);
});

test("the label comes back two seconds after the last press, and also when the element has been moved", async (t) => {
  replaceClipboard(t, async () => {});
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { root, click } = mounted("```\nx\n```");
  const button = root.querySelector<HTMLElement>(".copy");
  for (const _press of [1, 2]) {
    click(".copy");
    await new Promise(setImmediate);
    assert.equal(button?.title, "Copied");
    t.mock.timers.tick(1500);
  }
  assert.equal(button?.title, "Copied", "the timer of the first press has no say any more");
  const other = document.createElement("div");
  document.body.append(other);
  other.append(root);
  t.mock.timers.tick(500);
  assert.equal(button?.title, "Copy");
});

test("an external image is requested by a click, without a referrer, and stays while more comes in", () => {
  const { root, stream, click } = mounted("![a cat](https://img.example/x.png) and");
  click("button.image");
  const image = root.querySelector("img");
  assert.equal(image?.getAttribute("src"), "https://img.example/x.png");
  assert.equal(image?.getAttribute("referrerpolicy"), "no-referrer");
  assert.equal(image?.getAttribute("alt"), "a cat");
  stream.update("![a cat](https://img.example/x.png) and **more", true);
  stream.update("![a cat](https://img.example/x.png) and **more**\n\nend", false);
  assert.equal(root.querySelector("img"), image);
  assert.equal(root.querySelector("button.image"), null);
});

test("an image that cannot be shown becomes its text and a link to it, also while more comes in", () => {
  const source = "![a cat](https://img.example/x.png) and";
  const { root, stream, click } = mounted(source);
  click("button.image");
  root.querySelector("img")?.dispatchEvent(new Event("error"));
  const link = root.querySelector("a");
  for (const text of [source, `${source} more`, `${source} more\n\nend`]) {
    stream.update(text, true);
    assert.equal(root.querySelector("a"), link);
    assert.equal(root.querySelector("img, button.image"), null);
  }
  assert.equal(
    root.querySelector("p")?.textContent,
    "a cat (The image could not be loaded) Open image at img.example and more",
  );
  assert.equal(link?.getAttribute("href"), "https://img.example/x.png");
  assert.equal(link?.getAttribute("target"), "_blank");
  assert.equal(link?.getAttribute("rel"), "noopener noreferrer nofollow");
  assert.equal(link?.getAttribute("title"), "img.example");
});

test("an image in the text that is broken becomes its text, without a link, also while more comes in", () => {
  const text = "See ![a dot](data:image/png;base64,iVBORw0KGgo=) and";
  const { root, stream } = mounted(text);
  root.querySelector("img")?.dispatchEvent(new Event("error"));
  const shown = "See a dot (The image could not be loaded) and";
  assert.equal(root.textContent, shown);
  stream.update(`${text} more`, true);
  assert.equal(root.textContent, `${shown} more`);
  assert.equal(root.querySelector("a, img"), null);
});

test("where the page's policy forbids external images, each is a link from the start, and nothing failed", () => {
  const root = document.createElement("div");
  newStream(root, {}, "none").update("![a cat](https://img.example/x.png) ![](https://img.example/y.png)", false);
  assert.equal(root.textContent, "a cat Open image at img.example Open image at img.example");
  assert.deepEqual(
    [...root.querySelectorAll("a")].map(({ href }) => href),
    ["https://img.example/x.png", "https://img.example/y.png"],
  );
  assert.equal(root.querySelector("button"), null);
});
