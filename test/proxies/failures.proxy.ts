/** The page in front of a server that is killed or freezes, and of a network that does, through each proxy. */

import assert from "node:assert/strict";
import { after, type TestContext } from "node:test";
import type { Page } from "playwright-core";
import { type ChatElement, chatIn, shown } from "../browser/chat-page.ts";
import { launchBrowser, openPage } from "../support/browser.ts";
import { type StartedCommand, start } from "../support/command.ts";
import { gate, PROCESS_MS, within } from "../support/deadline.ts";
import { freePort } from "../support/free-port.ts";
import { startRelay } from "../support/relay.ts";
import { type ReverseProxy, startReverseProxy } from "../support/reverse-proxy.ts";
import { temporaryProject } from "../support/temporary-project.ts";
import { eventStream, startUpstream, type UpstreamServer } from "../support/upstream-server.ts";
import { SETUPS, type Setup, TRUSTING, through } from "./setups.ts";

const browser = await launchBrowser({ after });

/** Numbered pieces, so that a missing one is noticed. */
const COUNTED = ["Here: ", ...Array.from({ length: 300 }, (_, number) => `${number} `)];

const piece = (content: string) => eventStream({ choices: [{ index: 0, delta: { content } }] });
const finished = eventStream({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }, "[DONE]");
const answer = (text: string) => ({ body: [piece(text), finished] });

interface Scene {
  readonly upstream: UpstreamServer;
  readonly front: ReverseProxy;
  readonly chat: ChatElement;
  /** The chat's message about the connection. */
  readonly connection: ReturnType<ChatElement["input"]["locator"]>;
  /** The server's process. */
  readonly command: () => StartedCommand["command"];
  /** Starts the server again, on the same port. */
  readonly restart: () => Promise<void>;
  /** The network between browser and proxy. */
  readonly network: Awaited<ReturnType<typeof startRelay>>;
}

/** Starts the built command behind a proxy, and opens the real page. */
async function open(t: TestContext, { proxy, edits }: Setup): Promise<Scene> {
  const upstream = await startUpstream();
  t.after(() => upstream.close());
  const project = temporaryProject(t, { "agent.ts": 'export default { name: "Acme", model: "compatible/scripted" };' });
  const env = { ...TRUSTING, PORT: String(await freePort()), COMPATIBLE_BASE_URL: upstream.url };
  let started = await start(t, [project], { env });
  const front = await startReverseProxy(t, proxy, Number(env.PORT), { edits });
  const network = await startRelay(t, Number(new URL(front.url).port));
  const { page } = await openPage(t, browser);
  await page.goto(network.url);
  const chat = chatIn(page);
  await chat.input.waitFor();
  return {
    upstream,
    front,
    chat,
    connection: page.locator('[part="connection"]'),
    command: () => started.command,
    network,
    async restart() {
      started = await start(t, [project], { env });
      // HAProxy sends no requests to a server that it considers down until its next health check.
      await served(front);
      await within(reconnect(page), "a connection that is good again");
    },
  };
}

/** Clicks "Try now" until an attempt succeeds, because the pause between attempts may be long by now. */
async function reconnect(page: Page): Promise<void> {
  const again = page.getByRole("button", { name: "Try now" });
  while ((await page.locator('[part="connection"]').count()) > 0) await again.click({ timeout: 500 }).catch(() => {});
}

async function served({ url }: ReverseProxy): Promise<void> {
  const ask = async () => {
    while ((await fetch(`${url}/health`).catch(() => undefined))?.status !== 200);
  };
  await within(ask(), "an answer through the proxy", PROCESS_MS);
}

const asked = ({ upstream }: Scene) =>
  upstream.calls.map(({ json }) => json.messages.map(({ content }: { content: unknown }) => content));

for (const setup of SETUPS) {
  through(
    setup,
    "a server killed in the middle of an answer: the page keeps the text, says so, and goes on with the next message",
    async (t) => {
      const scene = await open(t, setup);
      const { chat, upstream, connection } = scene;
      const never = gate();
      t.after(() => never.open());
      upstream.reply({ body: [piece("Half of"), never.opened] }, answer("Whole."), answer("Next."));
      await chat.say("First");
      await chat.answer.getByText("Half of").waitFor();
      scene.command().kill("SIGKILL");
      await connection.waitFor();
      await scene.restart();
      await chat.error.getByText("The connection was lost").waitFor();
      assert.equal(await shown(chat.answer), "Half of");
      await connection.waitFor({ state: "detached" });
      await chat.retry.click();
      await chat.answer.getByText("Whole.").waitFor();
      await chat.ask("Second", "Next.");
      assert.deepEqual(asked(scene), [["First"], ["First"], ["First", "Whole.", "Second"]]);
    },
  );

  through(setup, "a message whose server is killed before its first word is sent again by itself, once", async (t) => {
    const scene = await open(t, setup);
    const { chat, upstream, connection } = scene;
    const never = gate();
    t.after(() => never.open());
    upstream.reply(answer("One."), { body: [never.opened] }, answer("Two."));
    await chat.ask("First", "One.");
    const called = upstream.nextCall();
    await chat.say("Second");
    await called;
    scene.command().kill("SIGKILL");
    await connection.waitFor();
    await scene.restart();
    await chat.answer.getByText("Two.").waitFor();
    assert.equal(await chat.error.count(), 0);
    assert.equal(await chat.questions.count(), 2);
    const second = ["First", "One.", "Second"];
    assert.deepEqual(asked(scene), [["First"], second, second]);
  });

  through(
    setup,
    "a server that freezes in the middle of an answer: no character is lost or doubled when it moves again",
    async (t) => {
      const scene = await open(t, setup);
      const { chat, upstream } = scene;
      const frozen = gate();
      const [first = "", ...rest] = COUNTED;
      upstream.reply({ body: [piece(first), frozen.opened, ...rest.map(piece), finished] });
      await chat.say("Count");
      await chat.answer.getByText("Here:").waitFor();
      scene.command().kill("SIGSTOP");
      const written = upstream.calls[0]?.closed;
      frozen.open();
      // The whole answer waits at the frozen process, and another request arrives meanwhile.
      const health = fetch(`${scene.front.url}/health`);
      await within(Promise.resolve(written), "the upstream's last byte");
      scene.command().kill("SIGCONT");
      await chat.replies.locator(`xpath=self::*[@aria-busy="false"]`).waitFor();
      assert.equal(await shown(chat.answer), COUNTED.join("").trim());
      assert.equal((await health).status, 200);
      assert.equal(await chat.error.count(), 0);
      assert.equal(upstream.calls.length, 1);
    },
  );

  for (const end of ["thaw", "cut"] as const) {
    through(
      setup,
      `a page whose network freezes in the middle of an answer has all of it once after a ${end}`,
      async (t) => {
        const scene = await open(t, setup);
        const { chat, upstream, network } = scene;
        const [more, last] = [gate(), gate()];
        const pieces = COUNTED.map(piece);
        upstream.reply({
          body: [
            ...pieces.slice(0, 100),
            more.opened,
            ...pieces.slice(100, 200),
            last.opened,
            ...pieces.slice(200),
            finished,
          ],
        });
        await chat.say("Count");
        await chat.answer.getByText("98").waitFor();
        network.freeze();
        more.open();
        // The server continues meanwhile.
        for (let round = 0; round < 10; round++) await fetch(`${scene.front.url}/health`);
        assert.doesNotMatch(await shown(chat.answer), /150/);
        if (end === "cut") network.cut();
        network.thaw();
        await chat.answer.getByText("198").waitFor();
        last.open();
        await chat.replies.locator(`xpath=self::*[@aria-busy="false"]`).waitFor();
        assert.equal(await shown(chat.answer), COUNTED.join("").trim());
        assert.equal(await chat.error.count(), 0);
        assert.equal(upstream.calls.length, 1);
        assert.equal(await chat.replies.count(), 1);
      },
    );
  }
}
