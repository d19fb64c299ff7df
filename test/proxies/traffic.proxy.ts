/** Clients of Parley must not notice nginx, HAProxy and Caddy in front of it, as configured in `examples/deploy`. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { get } from "node:http";
import { after } from "node:test";
import { chatIn, watchAddresses } from "../browser/chat-page.ts";
import { button } from "../browser/launcher-page.ts";
import { launchBrowser, openPage } from "../support/browser.ts";
import { post } from "../support/chat-transports.ts";
import { gate, within } from "../support/deadline.ts";
import { outerAddress } from "../support/reverse-proxy.ts";
import { LINES, newRun, openLine } from "../support/run-lines.ts";
import { end, hang, say, wait } from "../support/scripted-provider.ts";
import { sitePage, startSite } from "../support/site.ts";
import { connect } from "../support/socket-client.ts";
import { BELOW_A_PATH, SETUPS, startBehind, through } from "./setups.ts";

const browser = await launchBrowser({ after });

for (const setup of [...SETUPS, ...BELOW_A_PATH]) {
  for (const name of LINES) {
    through(setup, `the first token is there before the second one is made (${name})`, async (t) => {
      const more = gate();
      const { front } = await startBehind(t, setup, { turns: [[say("One"), wait(more.opened), say("Two")]] });
      const line = await openLine[name](t, front, { message: "Hi" });
      assert.equal((await line.next()).data, "One");
      more.open();
      const rest = await line.rest();
      assert.deepEqual(
        rest.map(({ type }) => type),
        ["token", "done"],
      );
    });

    through(setup, `an answer goes on after the proxy was restarted in its middle (${name})`, async (t) => {
      const more = gate();
      const { server, front } = await startBehind(t, setup, { turns: [[say("One"), wait(more.opened), say("Two")]] });
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
    });
  }

  through(setup, "comments keep a silent stream open for longer than the proxy waits", async (t) => {
    const more = gate();
    const { front } = await startBehind(
      t,
      setup,
      { env: { PARLEY_KEEP_ALIVE_SECONDS: "0.2" }, turns: [[say("One"), wait(more.opened), say("Two")]] },
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
    await readUntil(15, /^: keep-alive$/gm);
    more.open();
    await readUntil(1, /^event: done$/gm);
  });

  through(setup, "a body over the limit is 413 in Parley's words, also while it is still sent", async (t) => {
    const { front } = await startBehind(t, setup, { env: { PARLEY_MAX_BODY_BYTES: "100000" }, turns: [[say("Fine")]] });
    const tooLarge = { message: "x".repeat(8 * 1024 * 1024), stream: false };
    const answer = await post(front, tooLarge);
    assert.equal(answer.status, 413);
    assert.equal((await answer.json()).error.code, "request_too_large");
    assert.equal((await post(front, { message: "Hi", stream: false })).status, 200);
  });

  through(setup, "clients are counted by their own address, whatever they say of it", async (t) => {
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

  through(setup, "/metrics is not for the outside", async (t) => {
    const { front, server } = await startBehind(t, setup, { turns: [] });
    const { origin } = new URL(front.url);
    for (const url of [`${front.url}/metrics`, `${front.url}/metrics?x`, `${origin}/metrics`, `${origin}/x/metrics`]) {
      assert.equal((await fetch(url)).status, 404, url);
    }
    // Not in encoded form, and not with an extra slash.
    for (const name of [
      "%6detrics",
      "/metrics",
      "metrics/",
      "x/../metrics",
      "%2e/metrics",
      "metrics%3f",
      "%2fmetrics",
      "%256detrics",
    ]) {
      // Unchanged: `fetch` would resolve the dots.
      const [answer] = await once(get(origin, { path: `${setup.path}/${name}` }), "response");
      answer.resume();
      assert.ok([301, 308, 400, 404].includes(answer.statusCode), `${name}: ${answer.statusCode}`);
    }
    assert.equal((await fetch(`${server.url}/metrics`)).status, 200);
    assert.equal((await fetch(`${front.url}/health`)).status, 200);
  });

  through(setup, "the proxy's log holds no key and no id of a run", async (t) => {
    const key = "a-key-of-this-test";
    const env = { PARLEY_API_KEY: key };
    const { front, server } = await startBehind(t, setup, { env, turns: [[say("One")]] });
    // On a new connection: HAProxy closes a reused one without a response if the server's connection is gone.
    const ask = async (url: string) => {
      const [answer] = await once(get(url, { agent: false }), "response");
      answer.resume();
      return answer.statusCode;
    };
    const run = newRun();
    const message = { message: "Hi", run };
    const socket = await openLine.socket(t, front, message, { key });
    await socket.rest();
    await socket.cut();
    const stream = await openLine.sse(t, front, { resume: run, after: 0 }, { key });
    await stream.rest();
    // The target of a redirect is in a header, too.
    await (await fetch(`${front.url}?key=${key}`)).text();
    // Failed requests may be logged elsewhere.
    await server.close();
    for (const path of [`/ws/chat?key=${key}`, `/api/chat/runs/${run}`]) {
      assert.ok((await ask(`${front.url}${path}`)) >= 500);
    }
    // One line per request: the WebSocket's appears when the proxy has noticed its end.
    const least = setup.path === "" ? 6 : 7;
    for (let asked = 0; (front.log().match(/GET/g) ?? []).length < least; asked++) {
      assert.ok(asked < 500, front.log());
      await ask(`${front.url}/api/info`);
    }
    assert.doesNotMatch(front.log(), new RegExp(`${key}|${run}`));
  });

  through(setup, "a client that leaves ends the run at the model", async (t) => {
    const held = gate();
    const { front, server } = await startBehind(t, setup, { turns: [[say("One"), wait(held.opened)]] });
    const line = await openLine.sse(t, front, { message: "Hi" });
    await line.next();
    await line.cut();
    await within(Promise.resolve(server.model.asked[0]?.aborted), "the abort of the request");
    held.open();
  });

  through(setup, "a conversation on a WebSocket, and its close code at a shutdown", async (t) => {
    const { front, server } = await startBehind(t, setup, { turns: [[say("One")], [say("Two")]] });
    const client = await connect(t, front.socketUrl);
    for (const text of ["One", "Two"]) {
      assert.equal((await client.run({ message: "Hi" })).at(-1)?.data, text);
    }
    await server.close();
    assert.equal((await client.closed).code, 1001);
  });

  through(setup, "the page shows each answer once, over a frozen and a restarted proxy", async (t) => {
    const [more, last] = [gate(), gate()];
    const { front } = await startBehind(t, setup, {
      turns: [[say("One, "), wait(more.opened), say("two, "), wait(last.opened), say("three."), end()]],
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

for (const setup of BELOW_A_PATH) {
  through(
    setup,
    "the path without its slash leads to the page, and the page chats, resumes and stops below it",
    async (t) => {
      const more = gate();
      const { front, server } = await startBehind(t, setup, {
        turns: [
          [say("One, "), wait(more.opened), say("two.")],
          [say("Endless"), hang],
        ],
      });
      const { page } = await openPage(t, browser);
      const seen = watchAddresses(page);
      await page.goto(`${front.url}?embed=1&x=y`);
      assert.equal(page.url(), `${front.url}/?embed=1&x=y`);
      const chat = chatIn(page);
      await chat.say("Count");
      await chat.answer.getByText("One,").waitFor();
      await front.restart();
      more.open();
      await chat.answer.getByText("One, two.").waitFor();
      await chat.answered();
      await chat.say("And?");
      await chat.answer.getByText("Endless").waitFor();
      await chat.stop.click();
      await within(Promise.resolve(server.model.asked[1]?.aborted), "the abort of the request");
      assert.equal(await chat.error.count(), 0);
      const paths = [...seen.requests, ...seen.sockets].map((address) => new URL(address).pathname);
      const isOutside = (path: string) => path.startsWith("/") && !path.startsWith("/support/");
      assert.deepEqual(paths.filter(isOutside), ["/support"]);
    },
  );

  through(setup, "the path without its slash, and without a query, leads to the page", async (t) => {
    const { front } = await startBehind(t, setup, { turns: [] });
    const answer = await fetch(front.url);
    assert.equal(new URL(answer.url).pathname, "/support/");
    assert.match(await answer.text(), /<agent-chat/);
  });

  through(setup, "the button of another site finds the server below the path", async (t) => {
    const { front } = await startBehind(t, setup, { turns: [[say("Hello.")]] });
    const site = await startSite(t, { "/": sitePage(`<script src="${front.url}/widget.js"></script>`) });
    const { page } = await openPage(t, browser);
    await page.goto(site.url);
    await button(page).click();
    await chatIn(page.locator("agent-chat")).ask("Hi", "Hello.");
  });
}
