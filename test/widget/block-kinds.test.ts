/** Kinds of blocks: a kind defined by this test, unknown to all files of the chat, works like a built-in one. */

import "../support/dom.ts";
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { html, render } from "lit";
import type { AssistantMessage, Block } from "../../widget/conversations/messages.ts";
import { en } from "../../widget/i18n/strings.ts";
import type { BlockModule } from "../../widget/ui/block-module.ts";
import { type BlockKind, blockKinds } from "../../widget/ui/blocks.ts";
import type { ChatContext } from "../../widget/ui/context.ts";
import { Announcer } from "../../widget/ui/controllers/announcer.ts";
import { AnswerAnnouncer } from "../../widget/ui/controllers/answer-announcer.ts";
import { exportTranscript } from "../../widget/ui/export.ts";

await import("../../widget/chat.ts");
await import("../../widget/ui/talk.ts");
const { ChatPart } = await import("../../widget/ui/chat-part.ts");
const { MessageElement } = await import("../../widget/ui/message.ts");

interface Place {
  readonly type: "place";
  readonly name: string;
  readonly isFound: boolean;
}

class PlacesElement extends ChatPart {
  static override properties = { places: { attribute: false } };
  places: readonly Place[] = [];

  protected override render() {
    return html`<p>${this.places.map(({ name }) => name).join(", ")}</p>`;
  }
}

const module = {
  PlacesElement,
  transcribe: ({ type, name }: Place) => ({
    parts: [
      ["name", "map"],
      ["text", `# ${name}`],
    ] as const,
    json: { type, name },
  }),
};

const load = () => Promise.resolve(module as unknown as BlockModule);

const row = {
  element: { tag: "test-places", module: { load, loadEventually: load } },
  draw: (places: readonly Place[], _: boolean, { context }: { context: ChatContext }) =>
    html`<test-places .context=${context} .places=${places}></test-places>`,
  isActive: ({ isFound }: Place) => !isFound,
  speak: ({ name }: Place) => `On the map: ${name}`,
};

Object.assign(blockKinds, { place: row as unknown as BlockKind });
after(() => void Reflect.deleteProperty(blockKinds, "place"));

const context = {
  strings: en,
  agent: "Ada",
  modes: { thinking: "auto", tools: "auto", feedback: false },
  actions: { holdScroll() {} },
  renderers: {},
  toolRenderers: {},
  messageActions: [],
  headingLevel: 3,
} as unknown as ChatContext;

const place = (name: string, isFound = true) => ({ type: "place", name, isFound }) as unknown as Block;
const text = (said: string): Block => ({ type: "text", text: said });

function answer(blocks: readonly Block[], more: Partial<AssistantMessage> = {}): AssistantMessage {
  return { role: "assistant", id: "m1", blocks, status: "done", finishReason: "stop", ...more };
}

async function drawn(message: AssistantMessage): Promise<InstanceType<typeof MessageElement>> {
  const element = Object.assign(new MessageElement(), { context, message });
  document.body.append(element);
  await customElements.whenDefined("test-places");
  await element.updateComplete;
  return element;
}

test("blocks of a kind are drawn where they stand, by its element, which is loaded with the first, those in a row together", async () => {
  assert.equal(customElements.get("test-places"), undefined);
  const element = await drawn(answer([text("A"), place("Rome"), place("Oslo"), text("B"), place("Bern")]));
  const parts = [...element.querySelectorAll("agent-chat-markdown, test-places")];
  assert.deepEqual(
    parts.map(({ localName, textContent }) => [localName, textContent.trim()]),
    [
      ["agent-chat-markdown", "A"],
      ["test-places", "Rome, Oslo"],
      ["agent-chat-markdown", "B"],
      ["test-places", "Bern"],
    ],
  );
});

test("a block that shows that the agent works stands in for the sign of it", async () => {
  const streaming = (isFound: boolean) => answer([text("A"), place("Rome", isFound)], { status: "streaming" });
  const element = await drawn(streaming(false));
  assert.equal(element.querySelector(".waiting"), null);
  element.message = streaming(true);
  await element.updateComplete;
  assert.ok(element.querySelector(".waiting"));
});

test("a call that runs is sign enough, also where a text without a word comes behind it", async () => {
  const call = { type: "tool", callId: "c1", tool: "look", arguments: "{}", status: "running" } as const;
  const element = await drawn(answer([call, text("\n")], { status: "streaming" }));
  assert.equal(element.querySelector(".waiting"), null);
  element.message = answer([{ ...call, status: "completed" }, text("\n")], { status: "streaming" });
  await element.updateComplete;
  assert.ok(element.querySelector(".waiting"));
});

test("what is said of a block follows the texts of its answer", async () => {
  const region = document.createElement("div");
  let draw = () => {};
  const announcer = new Announcer({
    addController() {},
    removeController() {},
    requestUpdate: () => draw(),
    updateComplete: Promise.resolve(true),
  });
  const blocks = [place("Rome"), text("There.")];
  const element = await drawn(answer(blocks));
  const voice = new AnswerAnnouncer({
    announcer,
    context: () => context,
    find: () => element,
    drawn: () => Promise.resolve(element),
  });
  voice.watch(answer([], { status: "streaming" }));
  const said = new Promise<void>((resolve) => {
    draw = resolve;
  });
  voice.watch(answer(blocks, { suggestions: ["Thanks"] }));
  await said;
  render(announcer.render(), region);
  assert.deepEqual(
    [...region.querySelectorAll("[role=status] p")].map(({ textContent }) => textContent),
    [en.answering, "There.", "On the map: Rome", `${en.suggestions}: Thanks`],
  );
  announcer.hostDisconnected();
});

test("a block is exported as its file says, and stays a part of its message", async () => {
  const messages = [answer([text("There."), place("Rome")])];
  const markdown = await exportTranscript("markdown", messages, context);
  assert.equal(markdown, "## Ada said:\n\nThere.\n\n`map`\n\n### Rome\n");
  const [exported] = JSON.parse(await exportTranscript("json", messages, context));
  assert.deepEqual(exported.blocks, [
    { type: "text", text: "There." },
    { type: "place", name: "Rome" },
  ]);
});

test("calls that wait are a kind of their own: drawn together and exported, also where tools are hidden", async () => {
  const call = (callId: string, more: object) =>
    ({ type: "tool", callId, tool: "pay", arguments: '{"sum":1}', status: "completed", ...more }) as Block;
  const waiting = (callId: string) => call(callId, { status: "waiting", approval: { text: `Pay ${callId}?` } });
  const message = answer([text("A"), call("c1", {}), waiting("c2"), text("B"), waiting("c3")]);
  const hidden = { ...context, modes: { ...context.modes, tools: "hidden" } } as ChatContext;
  const element = Object.assign(new MessageElement(), { context: hidden, message, canDecide: true });
  document.body.append(element);
  await customElements.whenDefined("agent-chat-approval");
  await element.updateComplete;
  const parts = [...element.querySelectorAll("agent-chat-markdown, agent-chat-approval, agent-chat-steps")];
  assert.deepEqual(
    parts.map(({ localName }) => localName),
    ["agent-chat-markdown", "agent-chat-markdown", "agent-chat-approval"],
  );
  assert.deepEqual(
    [...(parts[2]?.querySelectorAll(".question") ?? [])].map(({ textContent }) => textContent.trim()),
    ["Pay c2?", "Pay c3?"],
  );
  // Each card has its own primary button, and there is none for all.
  const filled = () => [...element.querySelectorAll(".filled")].map((it) => it.id);
  assert.deepEqual(filled(), ["approve-c2", "approve-c3"]);
  element.querySelector<HTMLElement>("#decline-c2")?.click();
  await element.updateComplete;
  assert.deepEqual(filled(), ["decline-c2", "approve-c3"]);
  const [exported] = JSON.parse(await exportTranscript("json", [message], hidden));
  assert.deepEqual(
    exported.blocks.map((it: { text?: string; question?: string }) => it.text ?? it.question),
    ["A", "Pay c2?", "B", "Pay c3?"],
  );
  // Calls that the agent no longer knows cannot be decided.
  element.message = answer([waiting("c2")], { forgotten: true });
  element.context = context;
  await element.updateComplete;
  assert.equal(element.querySelector("agent-chat-approval"), null);
  assert.ok(element.querySelector("agent-chat-steps"));
});
