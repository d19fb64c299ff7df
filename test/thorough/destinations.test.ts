/** Destinations of an answer's links and images, as the browser itself parses them. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { after, type TestContext, test } from "node:test";
import type { Page, Request } from "playwright-core";
import type { AgentChat } from "../../widget/element/agent-chat.ts";
import { type ChatElement, canCopy, chatIn, openRows } from "../browser/chat-page.ts";
import { hostileDestinations, PLACES } from "../fixtures/hostile-destinations.ts";
import { launchBrowser, openPage } from "../support/browser.ts";
import { RED_PIXEL } from "../support/files.ts";
import { call, type Step, say, think } from "../support/scripted-provider.ts";
import { sitePage, startSite } from "../support/site.ts";
import { type ServerOptions, startServer } from "../support/start-server.ts";
import { echo } from "../support/test-tools.ts";

const browser = await launchBrowser({ after });

/** Pages of another site than the chat server's. `head` is part of their HTML. */
const PAGES = {
  "a page without HTTPS": { scheme: "http", head: "" },
  "a page with HTTPS": { scheme: "https", head: "" },
  "a page with another site's base": {
    scheme: "http",
    head: '<base href="https://evil.example/a/">',
  },
} as const;

interface Watched extends ChatElement {
  page: Page;
  /** Addresses requested since the page was complete, except those of the chat server. */
  requests: string[];
  /** Resolves at the next request to another address: code of the chat may load at any time. */
  asked(): Promise<unknown>;
}

/** Counts all connections to `evil.example`, even without a request, and closes them. */
async function startEvil(t: TestContext): Promise<{ port: number; connections: () => number }> {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  return { port, connections: () => connections };
}

/** Opens a site with the chat, at `http://shop.example:PORT/` or `https://shop.example/`. */
async function openShop(
  t: TestContext,
  { scheme, head }: (typeof PAGES)[keyof typeof PAGES],
  options: ServerOptions,
): Promise<Watched> {
  const server = await startServer(t, { env: { PARLEY_ALLOWED_ORIGINS: "*" }, ...options });
  const chatTag = `<agent-chat style="height: 600px"></agent-chat>`;
  const html = sitePage(`${chatTag}<script src="${server.url}/widget.js"></script>`, head);
  // For browsers, the site is not on this machine but requests the chat server, which is.
  const { page } = await openPage(t, browser, { permissions: ["local-network-access"] });
  if (scheme === "http") {
    await page.goto((await startSite(t, { "/": html })).publicUrl);
  } else {
    await page.route("https://shop.example/", (route) => route.fulfill({ contentType: "text/html", body: html }));
    await page.goto("https://shop.example/");
  }
  const chat = chatIn(page.locator("agent-chat"));
  await chat.greeting.waitFor();
  const requests: string[] = [];
  const isForeign = (request: Request) => {
    const { origin, protocol } = new URL(request.url());
    return origin !== server.url && !/^(blob|data):$/.test(protocol);
  };
  page.on("request", (request) => {
    if (isForeign(request)) requests.push(request.url());
  });
  return { ...chat, page, requests, asked: () => page.waitForEvent("request", isForeign) };
}

/** Splits a text within schemes, slashes and hosts. */
const inPieces = (text: string): Step[] =>
  (text.match(/.{1,41}/gs) ?? []).flatMap((piece) =>
    [piece.slice(0, 7), piece.slice(7, 20), piece.slice(20)].filter(Boolean).map(say),
  );

/** Problems of links and images of the last answer, as the browser parses them. */
function faultsIn({ replies }: ChatElement): Promise<string[]> {
  return replies.last().evaluate((reply) => {
    const faults: string[] = [];
    for (const image of reply.querySelectorAll("img")) {
      if (!/^(blob:|data:image\/(png|jpeg|gif|webp);)/.test(image.src)) {
        faults.push(`image ${image.src}`);
      }
    }
    for (const link of reply.querySelectorAll("a")) {
      const { href, host, protocol, origin } = link;
      if (!/^(https?|mailto|tel):$/.test(protocol)) faults.push(`link ${href}`);
      // A link's tooltip names its destination, unless it stays on this site.
      const isQuiet = /^http/.test(protocol) && origin !== location.origin && link.title !== host;
      if (isQuiet) faults.push(`silent link ${href}`);
      if (link.target !== "_blank" || link.rel !== "noopener noreferrer nofollow") {
        faults.push(`link without protection ${href}`);
      }
    }
    const hints = document.querySelectorAll("link:not([rel=stylesheet], [rel=icon])");
    return [...faults, ...[...hints].map((hint) => hint.outerHTML)];
  });
}

/** Destinations per answer. */
const PER_ANSWER = 150;

for (const [page, [name, kind]] of Object.entries(PAGES).entries()) {
  test(`no hostile destination of an answer is asked for without a click on ${name}`, async (t) => {
    const { port, connections } = await startEvil(t);
    // Each as an image, which would load automatically, on every page; in another place on one of the pages.
    const parts = hostileDestinations(port).map((destination, index) =>
      [PLACES[0], ...(Math.floor(index / PLACES.length) % 3 === page ? [PLACES[index % PLACES.length]] : [])]
        .map((place) => `${place?.(destination, index)}\n\n`)
        .join(""),
    );
    const answers: string[] = [];
    while (parts.length > 0) answers.push(parts.splice(0, PER_ANSWER).join(""));
    const last = `![Now](https://evil.example:${port}/now.png)`;
    const chat = await openShop(t, kind, {
      turns: [...answers.map(inPieces), [say(last)]],
    });
    for (const [index] of answers.entries()) {
      await chat.say("Go");
      await chat.answered(index + 1);
      assert.deepEqual([await faultsIn(chat), chat.requests, connections()], [[], [], 0]);
    }
    // Proves that requests are recorded: the first request is the one of this click.
    await chat.say("Go");
    await chat.answered(answers.length + 1);
    const asked = chat.asked();
    await chat.answer.getByRole("button", { name: "evil.example" }).click();
    await asked;
    assert.deepEqual(chat.requests, [`https://evil.example:${port}/now.png`]);
  });
}

test("no text around the answers makes an image or a link of a destination, but for safe links of the author", async (t) => {
  const { port, connections } = await startEvil(t);
  const all = hostileDestinations(port)
    .filter((_, index) => index % 9 === 0)
    .map((destination) => `![i](${destination}) [l](<${destination}>) ${destination}`)
    .join("\n");
  const chat = await openShop(t, PAGES["a page without HTTPS"], {
    agent: {
      tools: [echo],
      // Short like a real disclaimer: a long one would cover what is above it.
      chat: { welcome: all, suggestions: [all], disclaimer: all.slice(0, 80) },
    },
    turns: [[think(all), call("c1", "echo", { text: all })], [say("Unharmed.")]],
  });
  const element = chat.page.locator("agent-chat");
  // The author's texts may contain links, with the same protection as in answers.
  const isOfAuthor = '[part="empty"] a, [part="disclaimer"] a';
  const made = async () => {
    const all = element.locator("img, a, [src], [href]");
    return (await all.count()) - (await all.and(element.locator(isOfAuthor)).count());
  };
  assert.equal(await made(), 0, "before the first one");
  assert.deepEqual(await faultsIn({ ...chat, replies: chat.greeting }), []);
  assert.deepEqual(await faultsIn({ ...chat, replies: element.locator('[part="disclaimer"]') }), []);
  await chat.say(all);
  await chat.answered();
  await openRows(chat);
  await chat.tools.locator("pre").last().getByText("evil.example").waitFor();
  assert.equal(await made(), 0);
  await element.evaluate((node, text) => {
    (node as AgentChat).suggest([text]);
    (node as AgentChat).setDraft(text);
  }, all);
  await element.locator('[part="suggestion"]').waitFor();
  assert.equal(await made(), 0, "after it");
  assert.deepEqual([chat.requests, connections()], [[], 0]);
});

test("what the launcher shows beside its button is text", async (t) => {
  const { port, connections } = await startEvil(t);
  const server = await startServer(t, { env: { PARLEY_ALLOWED_ORIGINS: "*" }, turns: [] });
  const words = `![i](https:evil.example:${port}/x.png) <https:evil.example:${port}>`;
  const said = `data-preview-after="0" data-preview="${words.replaceAll("<", "&lt;")}"`;
  const html = sitePage(`<script src="${server.url}/widget.js" ${said}></script>`);
  const site = await startSite(t, { "/": html });
  const { page } = await openPage(t, browser, { permissions: ["local-network-access"] });
  await page.goto(site.publicUrl);
  const bubble = page.getByRole("button", { name: "evil.example" });
  await bubble.waitFor();
  // Without Markdown syntax, like the greeting in the chat.
  assert.deepEqual([(await bubble.innerText()).trim(), connections()], [`!i <https:evil.example:${port}>`, 0]);
});

/** Visible links and images of the answer, with their destinations. */
const seen = ({ answer }: ChatElement) =>
  answer.evaluate((it) =>
    [...it.querySelectorAll("a, img, button, p")].map((node) => {
      if (node instanceof HTMLAnchorElement) return `${node.text} -> ${node.href} (${node.title})`;
      if (node instanceof HTMLImageElement) return `shown: ${node.alt}`;
      return node.textContent;
    }),
  );

test("a scheme without slashes means what the browser takes it for on that page", async (t) => {
  const { port } = await startEvil(t);
  const host = `evil.example:${port}`;
  const answer = `![A cat](https:${host}/cat.png)\n\n[Cats](https:${host}/cats)`;
  for (const [name, address, shownHost] of [
    ["a page without HTTPS", `https://${host}`, host],
    ["a page with HTTPS", `https://shop.example/${host}`, "shop.example"],
  ] as const) {
    const chat = await openShop(t, PAGES[name], { turns: [[say(answer)]] });
    await chat.say("Go");
    await chat.answered();
    const link = `Cats -> ${address}/cats (${shownHost})`;
    const button = `Load image from ${shownHost} A cat`;
    assert.deepEqual(await seen(chat), [button, button, "Cats", link], name);
    const asked = chat.asked();
    await chat.answer.getByRole("button", { name: "A cat" }).click();
    await asked;
    assert.deepEqual(chat.requests, [`${address}/cat.png`]);
  }
});

test("links of the page's own site and images in `data:` need no word", async (t) => {
  const data = `data:image/png;base64,${RED_PIXEL.toString("base64")}`;
  const answer = `[Cart](/cart?a=1#b) [Next](next) [Top](#top) [Mail](mailto:a@shop.example)

![A dot](${data}) ![No dot](/dot.png) ![No dot](dot.png)`;
  const chat = await openShop(t, PAGES["a page with HTTPS"], { turns: [[say(answer)]] });
  await chat.say("Go");
  await chat.answered();
  assert.deepEqual(await seen(chat), [
    "Cart Next Top Mail",
    "Cart -> https://shop.example/cart?a=1#b ()",
    "Next -> https://shop.example/next ()",
    "Top -> https://shop.example/#top ()",
    "Mail -> mailto:a@shop.example (a@shop.example)",
    " No dot No dot",
    "shown: A dot",
  ]);
  assert.deepEqual(chat.requests, []);
});

test("a copied answer has links that lead where they led, and no image that waits", async (t) => {
  const { port } = await startEvil(t);
  const chat = await openShop(t, PAGES["a page with HTTPS"], {
    turns: [[say(`![i](https:evil.example:${port}/x.png) [l](//evil.example:${port}/x)`)]],
  });
  await chat.page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await chat.say("Go");
  await chat.answered();
  await canCopy(chat.page);
  await chat.page.getByRole("button", { name: "Copy answer" }).click();
  await chat.page.getByRole("button", { name: "Copied" }).waitFor();
  const html = await chat.page.evaluate(async () => {
    const [item] = await navigator.clipboard.read();
    return (await item?.getType("text/html"))?.text();
  });
  assert.equal(html, `<p> <a href="https://evil.example:${port}/x">l</a></p>`);
});
