/** Uploads of large files: progress, and the effects of Stop and of a lost connection. */

import assert from "node:assert/strict";
import { after, type TestContext, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { MAX_ATTACHMENT_BYTES } from "../../server/protocol/attachments.ts";
import { chatIn, dropLargePdf, openChat } from "../browser/chat-page.ts";
import { launchBrowser, openPage } from "../support/browser.ts";
import { within } from "../support/deadline.ts";
import { type ProxyOptions, startProxy } from "../support/proxy.ts";
import { startRelay } from "../support/relay.ts";
import { say } from "../support/scripted-provider.ts";
import { startServer } from "../support/start-server.ts";

const browser = await launchBrowser({ after });

/** More bytes than the buffers of two machines hold, so that some stay in the browser. */
const SIZE = 15_000_000;

/** A chat over a connection that can be frozen, with a large file in its composer. */
async function openWithFile(t: TestContext, proxy: ProxyOptions = {}, size = SIZE) {
  const turns = [[say("Hello.")], [say("Received.")], [say("On.")]];
  const server = await startServer(t, { turns });
  const { url } = await startProxy(t, server.port, proxy);
  const network = await startRelay(t, Number(new URL(url).port));
  const { page } = await openPage(t, browser);
  await page.goto(network.url);
  const chat = { page, ...chatIn(page) };
  await chat.ask("Hi", "Hello.");
  await dropLargePdf(chat, "plan.pdf", size);
  await page.locator('[part="composer"] [part="attachment"]').getByText("plan.pdf").waitFor();
  await chat.send.and(page.locator(":enabled")).waitFor();
  const progress = chat.questions.getByRole("progressbar", { name: "Sending the files…" });
  const asked = () => server.model.asked.map(({ messages }) => messages.at(-1)?.content);
  const files = () => server.model.asked.map(({ start }) => start.attachments.length);
  return { ...chat, network, progress, asked, files, log: server.log };
}

for (const upgrades of ["pass", "refuse"] as const) {
  test(`that large files are being sent is shown below them until the answer begins, upgrades: ${upgrades}`, async (t) => {
    const { network, progress, say, page, replies, files } = await openWithFile(t, { upgrades });
    network.freeze();
    await say("Look");
    await progress.waitFor();
    assert.equal(await progress.getAttribute("aria-valuenow"), null);
    assert.equal(await progress.innerText(), "Sending the files…");
    assert.equal(await page.locator('[role="status"]').getByText("Sending the files").count(), 0);
    network.thaw();
    await replies.getByText("Received.").waitFor();
    await progress.waitFor({ state: "hidden" });
    assert.deepEqual(files(), [0, 1]);
  });
}

test("Stop while files leave takes them back: the model is never asked, and the next message does not wait", async (t) => {
  const { network, progress, say, stop, replies, ask, asked, log } = await openWithFile(t);
  network.freeze();
  await say("Look");
  await progress.waitFor();
  await stop.click();
  await replies.getByText("You stopped this answer.").waitFor();
  await progress.waitFor({ state: "hidden" });
  network.thaw();
  await ask("Something else", "Received.");
  // The browser still sends the buffered data of the stopped message after that.
  const isLogged = async () => {
    while (!log.some((line) => line.includes('"end":"stopped"'))) await setTimeout(20);
  };
  await within(isLogged(), "the end of the run that was stopped");
  assert.deepEqual(asked(), ["Hi", "Something else"]);
});

test("a connection that is lost while files leave is opened again, and they arrive once", async (t) => {
  const { network, progress, say, replies, files } = await openWithFile(t);
  network.freeze();
  await say("Look");
  await progress.waitFor();
  network.cut();
  network.thaw();
  await replies.getByText("Received.").waitFor();
  await progress.waitFor({ state: "hidden" });
  assert.deepEqual(files(), [0, 1]);
});

test("a message with less than 256 kB of files does not show that they are being sent", async (t) => {
  for (const [size, count] of [
    [262_144, 1],
    [262_143, 0],
  ] as const) {
    const { page, network, progress, say, replies } = await openWithFile(t, { upgrades: "refuse" }, size);
    await page.clock.install();
    network.freeze();
    await say("Look");
    await replies.nth(1).waitFor();
    await page.clock.runFor(1_000);
    assert.equal(await progress.count(), count, `${size} bytes`);
    network.thaw();
    await page.clock.resume();
    await replies.getByText("Received.").waitFor();
  }
});

test("a file of exactly 20 MiB is taken and arrives whole, one byte more is refused", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("Big.")]] });
  await dropLargePdf(chat, "huge.pdf", MAX_ATTACHMENT_BYTES + 1);
  await chat.page.locator('[part="refusals"]').getByText("huge.pdf: larger than 20 MB.").waitFor();
  await dropLargePdf(chat, "big.pdf", MAX_ATTACHMENT_BYTES);
  await chat.drafts.getByText("20 MB").waitFor();
  await chat.ask("Big one", "Big.");
  const [attachment] = chat.server.model.asked[0]?.start.attachments ?? [];
  const sent = Buffer.alloc(MAX_ATTACHMENT_BYTES);
  sent.write("%PDF-");
  assert.equal(Buffer.from(attachment?.url?.split(",")[1] ?? "", "base64").equals(sent), true);
});
