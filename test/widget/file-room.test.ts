/** How much room a message has for files beside what else goes with it. */

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { mount } from "./mount.ts";
import { done, startScriptedServer } from "./scripted-server.ts";

const PNG = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1, 2, 3]);

/** A chat whose server takes little, and a way to attach a file that fits where nothing else is sent. */
async function open(t: TestContext, max_body_bytes: unknown = 16_384 + 4_000) {
  const server = await startScriptedServer(t, {
    info: { max_body_bytes: max_body_bytes as number },
  });
  const page = await mount(t, { server: server.url });
  await page.shown("textarea");
  const attach = async () => {
    await page.chat.attach([new File([PNG, "x".repeat(2_000)], "a.png", { type: "image/png" })]);
    await page.chat.updateComplete;
  };
  const converse = async () => {
    const sent = page.chat.send("Hello");
    const conversation_history = [{ role: "user" as const, content: "x".repeat(2_000) }];
    (await server.turn()).send(done("Hi.", { conversation_history }));
    await sent;
    await page.chat.updateComplete;
  };
  return { page, attach, converse };
}

const REFUSED = /^a\.png was not attached: .* 1\.\d kB together/;

test("what the conversation weighs that goes with the message leaves less room for files", async (t) => {
  const { page, attach, converse } = await open(t);
  await converse();
  await attach();
  assert.match(page.text("[part=refusals]"), REFUSED);
});

test("a long text leaves less room for files", async (t) => {
  const { page, attach } = await open(t);
  await page.type("x".repeat(2_000));
  await attach();
  assert.match(page.text("[part=refusals]"), REFUSED);
});

test("beside an earlier message that is changed only what was said before it counts", async (t) => {
  const { page, attach, converse } = await open(t);
  await converse();
  await page.click("[part=edit]");
  await page.shown("[part=editing]");
  await attach();
  assert.equal(page.all(".draft-files li").length, 1);
});

test("a size that is no number limits nothing", async (t) => {
  const { page, attach } = await open(t, "1");
  await attach();
  assert.equal(page.all(".draft-files li").length, 1);
});
