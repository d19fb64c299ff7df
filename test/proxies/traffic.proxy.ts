/** What clients of Parley notice of nginx and HAProxy in front of it, as `examples/deploy` sets them up: nothing. */

import assert from "node:assert/strict";
import { after, type TestContext, test } from "node:test";
import { chatIn } from "../browser/chat-page.ts";
import { launchBrowser, openPage } from "../support/browser.ts";
import { post } from "../support/chat-transports.ts";
import { gate, within } from "../support/deadline.ts";
import {
  type Edits,
  missing,
  outerAddress,
  type ProxyName,
  startReverseProxy,
} from "../support/reverse-proxy.ts";
import { LINES, newRun, openLine } from "../support/run-lines.ts";
import { end, say, wait } from "../support/scripted-provider.ts";
import { connect } from "../support/socket-client.ts";
import { type Cleanup, type ServerOptions, startServer } from "../support/start-server.ts";

interface Setup {
  name: string;
  proxy: ProxyName;
  edits: Edits;
  /** Makes every time of the proxy one second, so that a second is a long silence. */
  impatient: Edits;
}

const SETUPS: readonly Setup[] = [
  {
    name: "nginx",
    proxy: "nginx",
    edits: [],
    impatient: [["proxy_read_timeout 620s;", "proxy_read_timeout 1s;"]],
  },
  {
    name: "an nginx that buffers as it does by default",
    proxy: "nginx",
    edits: [["        proxy_buffering off;\n", ""]],
    impatient: [["proxy_read_timeout 620s;", "proxy_read_timeout 1s;"]],
  },
  {
    name: "HAProxy",
    proxy: "haproxy",
    edits: [],
    impatient: [
      ["timeout client 620s", "timeout client 1s"],
      ["timeout server 620s", "timeout server 1s"],
    ],
  },
];

const TRUSTING = { PARLEY_TRUSTED_PROXIES: "127.0.0.1" };

async function startBehind(
  t: Cleanup,
  { proxy, edits }: Setup,
  options: ServerOptions,
  more: { edits?: Edits; host?: string } = {},
) {
  const server = await startServer(t, { ...options, env: { ...TRUSTING, ...options.env } });
  const front = await startReverseProxy(t, proxy, server.port, {
    ...more,
    edits: [...edits, ...(more.edits ?? [])],
  });
  return { server, front };
}

const browser = await launchBrowser({ after });

for (const setup of SETUPS) {
  const skip = missing(setup.proxy);
  const through = (title: string, run: (t: TestContext) => Promise<void>) =>
    test(`through ${setup.name}: ${title}`, { skip }, run);

  for (const name of LINES) {
    through(`the first token is there before the second one is made (${name})`, async (t) => {
      const more = gate();
      const { front } = await startBehind(t, setup, {
        turns: [[say("One"), wait(more.opened), say("Two")]],
      });
      const line = await openLine[name](t, front, { message: "Hi" });
      assert.equal((await line.next()).data, "One");
      more.open();
      const rest = await line.rest();
      assert.deepEqual(
        rest.map(({ type }) => type),
        ["token", "done"],
      );
    });

    through(
      `an answer goes on after the proxy was restarted in its middle (${name})`,
      async (t) => {
        const more = gate();
        const { server, front } = await startBehind(t, setup, {
          turns: [[say("One"), wait(more.opened), say("Two")]],
        });
        const run = newRun();
        const line = await openLine[name](t, front, { message: "Hi", run });
        const first = await line.next();
        await front.restart();
        more.open();
        const again = await openLine[name](t, front, { resume: run, after: first.id });
        const texts = [first, ...(await again.rest())].filter(({ type }) => type === "token");
        assert.deepEqual(
          texts.map(({ data }) => data),
          ["One", "Two"],
        );
        assert.equal(server.model.asked.length, 1, "it was not paid for twice");
      },
    );
  }

  through("comments keep a silent stream open for longer than the proxy waits", async (t) => {
    const more = gate();
    const { front } = await startBehind(
      t,
      setup,
      {
        env: { PARLEY_KEEP_ALIVE_SECONDS: "0.2" },
        turns: [[say("One"), wait(more.opened), say("Two")]],
      },
      { edits: setup.impatient },
    );
    const answer = await post(front, { message: "Hi", stream: true });
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    assert.ok(reader);
    let text = "";
    const readUntil = async (count: number, what: RegExp) => {
      while ((text.match(what) ?? []).length < count) {
        const { done, value = "" } = await within(reader.read(), String(what));
        assert.ok(!done, `the stream ended: ${text}`);
        text += value;
      }
    };
    await readUntil(10, /^: keep-alive$/gm);
    more.open();
    await readUntil(1, /^event: done$/gm);
  });

  through(
    "a body over the limit is 413 in Parley's words, also while it is still sent",
    async (t) => {
      const { front } = await startBehind(t, setup, {
        env: { PARLEY_MAX_BODY_BYTES: "100000" },
        turns: [[say("Fine")]],
      });
      const tooLarge = { message: "x".repeat(8 * 1024 * 1024), stream: false };
      const answer = await post(front, tooLarge);
      assert.equal(answer.status, 413);
      assert.equal((await answer.json()).error.code, "request_too_large");
      assert.equal((await post(front, { message: "Hi", stream: false })).status, 200);
    },
  );

  through("clients are counted by their own address, whatever they say of it", async (t) => {
    const host = outerAddress();
    if (host === undefined) return t.skip("this machine has no address but the loopback one");
    const { front, server } = await startBehind(
      t,
      setup,
      { env: { PARLEY_RATE_PER_ADDRESS: "1" }, turns: [[say("Fine")], [say("Fine")]] },
      { host },
    );
    const ask = (address: string) => {
      const headers = { "x-forwarded-for": address };
      return post(front, { message: "Hi", stream: false }, { headers });
    };
    assert.equal((await ask("198.51.100.1")).status, 200);
    assert.equal((await ask("198.51.100.2")).status, 429);
    assert.doesNotMatch(server.log.join("\n"), /PARLEY_TRUSTED_PROXIES/);
  });

  through("/metrics is not for the outside", async (t) => {
    const { front, server } = await startBehind(t, setup, { turns: [] });
    assert.equal((await fetch(`${front.url}/metrics`)).status, 404);
    assert.equal((await fetch(`${server.url}/metrics`)).status, 200);
    assert.equal((await fetch(`${front.url}/health`)).status, 200);
  });

  through("a client that leaves ends the run at the model", async (t) => {
    const held = gate();
    const { front, server } = await startBehind(t, setup, {
      turns: [[say("One"), wait(held.opened)]],
    });
    const line = await openLine.sse(t, front, { message: "Hi" });
    await line.next();
    await line.cut();
    await within(Promise.resolve(server.model.asked[0]?.aborted), "the abort of the request");
    held.open();
  });

  through("a conversation on a WebSocket, and its close code at a shutdown", async (t) => {
    const { front, server } = await startBehind(t, setup, { turns: [[say("One")], [say("Two")]] });
    const client = await connect(t, front.socketUrl);
    for (const text of ["One", "Two"]) {
      assert.equal((await client.run({ message: "Hi" })).at(-1)?.data, text);
    }
    await server.close();
    assert.equal((await client.closed).code, 1001);
  });

  through("the page shows each answer once, over a frozen and a restarted proxy", async (t) => {
    const [more, last] = [gate(), gate()];
    const { front } = await startBehind(t, setup, {
      turns: [
        [say("One, "), wait(more.opened), say("two, "), wait(last.opened), say("three."), end()],
      ],
    });
    const { page } = await openPage(t, browser);
    await page.goto(front.url);
    const chat = chatIn(page);
    await chat.say("Count");
    await chat.answer.getByText("One,").waitFor();
    front.freeze();
    more.open();
    front.thaw();
    await chat.answer.getByText("One, two,").waitFor();
    await front.restart();
    last.open();
    last.open();
    await chat.answer.getByText("One, two, three.").waitFor();
    assert.equal(await chat.error.count(), 0);
    assert.equal(await chat.replies.count(), 1);
  });
}
