/** The chat's main paths in Firefox and WebKit. */

import assert from "node:assert/strict";
import type { RequestListener } from "node:http";
import type { TestContext } from "node:test";
import { Unauthorized } from "../../server/auth/authenticate.ts";
import { tool } from "../../server/parley-agent.ts";
import { fillList } from "../browser/kept.ts";
import { gate } from "../support/deadline.ts";
import { RED_PIXEL } from "../support/files.ts";
import { call, end, hang, say, type Turn, think, wait } from "../support/scripted-provider.ts";
import { startServer, type TestServer } from "../support/start-server.ts";
import { temporaryProject } from "../support/temporary-project.ts";
import { echo } from "../support/test-tools.ts";
import { until } from "./driver.ts";
import { engineTest, FIELD, type Handle, type Page } from "./page.ts";

const LOGO = `<svg xmlns="http://www.w3.org/2000/svg" width="60" height="20"><path d="M0 0h60v20H0z"/></svg>`;

async function open(t: TestContext, page: Page, turns: readonly Turn[]) {
  const server = await startServer(t, {
    turns,
    agent: { tools: [echo], chat: { suggestions: ["Ping"] } },
  });
  await page.open(server.url);
  await page.shown('[part="suggestion"]');
  return server;
}

engineTest("an answer streams in, with thinking, a tool and Markdown, and the next one remembers", async (page, t) => {
  const rest = gate();
  const server = await open(t, page, [
    [think("Hm."), call("c1", "echo", { text: "ping" })],
    [say("**Po"), wait(rest.opened), say("ng**\n\n| A |\n|---|\n| 1 |\n")],
    [say("Remembered.")],
  ]);
  await page.send("Go");
  await page.shown('[part="markdown"]', "Po");
  await page.button("Stop answering");
  rest.open();
  await page.shown("strong", "Pong");
  await page.shown("td", "1");
  await page.button("Send message");
  await page.focus(await page.shown('[part="tool"] button'));
  await page.press("Enter");
  await page.shown("pre", "ping");
  await page.send("And now?");
  await page.shown('[part="markdown"]', "Remembered.");
  assert.equal(server.model.asked.at(-1)?.messages.length, 5);
});

engineTest("Stop and Escape end an answer, and what was said stays", async (page, t) => {
  await open(t, page, [
    [say("Half"), hang],
    [say("Another half"), hang],
  ]);
  await page.send("One");
  await page.shown('[part="markdown"]', "Half");
  await page.click(await page.button("Stop answering"));
  await page.shown('[part="note"]', "You stopped this answer.");
  await page.send("Two");
  await page.shown('[part="markdown"]', "Another half");
  await page.press("Escape");
  await page.until(() => findAll('[part="note"]').length === 2);
});

engineTest("an answer that was coming goes on after a reload", async (page, t) => {
  const reloaded = gate();
  const server = await open(t, page, [[say("Before, "), wait(reloaded.opened), say("and after.")]]);
  await page.send("Go");
  await page.shown('[part="markdown"]', "Before,");
  await page.reload();
  await page.shown('[part="markdown"]', "Before,");
  await page.button("Stop answering");
  reloaded.open();
  await page.shown('[part="markdown"]', "Before, and after.");
  assert.equal(server.model.asked.length, 1, "the agent is not asked again");
});

/** Delays a server's responses for paths that match. */
function hold({ server: { http } }: TestServer, path: RegExp, until: Promise<void>): void {
  const listeners = http.listeners("request") as RequestListener[];
  http.removeAllListeners("request");
  http.on("request", async (req, res) => {
    if (path.test(req.url ?? "")) await until;
    for (const listener of listeners) listener(req, res);
  });
}

engineTest(
  "a question is seen before what draws messages has come, and the next one at the top of the view, also above an answer that comes at once",
  async (page, t) => {
    const [arrives, rest] = [gate(), gate()];
    const turns = [[say("**Hel"), wait(rest.opened), say("lo!**")], [say("All of it. ".repeat(200))]];
    const server = await startServer(t, { turns });
    hold(server, /\/chunks\/talk-/, arrives.opened);
    await page.open(server.url);
    await page.send("Is it <b>?");
    await page.shown(".undrawn .bubble", "Is it <b>?");
    await page.button("Stop answering");
    arrives.open();
    await page.shown("strong", "Hel");
    rest.open();
    await page.shown("strong", "Hello!");
    await page.gone(".undrawn");
    await page.button("Send message");
    await page.send("And now?");
    await page.shown('[part="markdown"]', "All of it.");
    const places: number[] = [];
    await until("where the question stays", async () => {
      const place = await page.run(() => {
        const [scroller, question] = [findAll(".scroller")[0], findAll(".bubble").at(-1)];
        return Number(question?.getBoundingClientRect().top) - Number(scroller?.getBoundingClientRect().top);
      });
      places.push(Math.round(place));
      return places.length > 20 && new Set(places.slice(-20)).size === 1;
    });
    assert.ok(Math.abs(Number(places.at(-1)) - 20) < 20, `${places.at(-1)} px`);
    await page.reload();
    await page.shown(".bubble", "Is it <b>?");
    await page.shown("strong", "Hello!");
    await page.shown('[part="markdown"]', "All of it.");
  },
);

engineTest("the text field grows with its lines, and shrinks again when they are sent", async (page, t) => {
  await open(t, page, [[say("Read.")]]);
  const field = await page.shown(FIELD);
  const height = () => page.run((it: Element) => Math.round(it.getBoundingClientRect().height), field);
  const hasHeight = (pixels: number) =>
    page.until(
      (it: Element, wanted: number) => Math.round(it.getBoundingClientRect().height) === wanted,
      field,
      pixels,
    );
  const before = await height();
  await page.click(field);
  for (const line of ["a", "b", "c"]) {
    await page.type(line);
    await page.press("Shift+Enter");
  }
  await hasHeight(before + 3 * 24);
  await page.press("Enter");
  await page.shown('[part="markdown"]', "Read.");
  await hasHeight(before);
});

engineTest("a file is attached, shown and sent; one that is not what it says is refused", async (page, t) => {
  const server = await open(t, page, [[say("Received.")]]);
  await page.run(() => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File(["%PDF-1.7\n"], "offer.pdf", { type: "application/pdf" }));
    dataTransfer.items.add(new File(["text"], "fake.pdf", { type: "application/pdf" }));
    findAll('[part="composer"]')[0]?.dispatchEvent(
      new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true, composed: true }),
    );
  });
  await page.shown('[part="attachments"]', "offer.pdf");
  await page.shown('[part="refusals"]', "fake.pdf");
  await page.send("Look");
  await page.shown('[part="markdown"]', "Received.");
  assert.deepEqual(
    server.model.asked[0]?.start.attachments?.map(({ name }) => name),
    ["offer.pdf"],
  );
});

engineTest("an image that was sent opens large, and Escape gives the focus back", async (page, t) => {
  await open(t, page, [[say("Red."), hang]]);
  await page.run((bytes: string) => {
    const dataTransfer = new DataTransfer();
    const red = Uint8Array.from(atob(bytes), (it) => it.charCodeAt(0));
    dataTransfer.items.add(new File([red], "red.png", { type: "image/png" }));
    findAll('[part="composer"]')[0]?.dispatchEvent(
      new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true, composed: true }),
    );
  }, RED_PIXEL.toString("base64"));
  await page.shown('[part="attachments"] img');
  await page.send("Look");
  await page.shown('[part="markdown"]', "Red.");
  await page.click(await page.shown(".sent-files button"));
  await page.shown("dialog:modal img");
  await page.press("Escape");
  await page.gone("dialog");
  await page.shown(".sent-files button:focus");
  await page.button("Stop answering");
});

/** A table too wide for any window, with a narrow first column; a folded section; and a footnote. */
const RICH = `${["| Name |", "|---|", "| First |"].map((row, at) => row + (at === 1 ? "---|" : " some words |").repeat(30)).join("\n")}

<details><summary>More</summary>

It was folded.

</details>

The end.[^1]

[^1]: A note.
`;

engineTest(
  "of an answer, a wide table keeps its first column and opens large, details open, and a note leads there and back",
  async (page, t) => {
    await open(t, page, [[say(RICH)]]);
    await page.send("Go");
    await page.button("Send message");
    const isPinned = (selector: string) =>
      page.until((box: string) => {
        const [table] = findAll(box);
        const cell = table?.querySelector("td");
        table?.scrollTo(500, 0);
        return (
          table?.scrollLeft === 500 &&
          cell?.textContent === "First" &&
          Math.abs(cell.getBoundingClientRect().left - table.getBoundingClientRect().left) <= 2
        );
      }, selector);
    await isPinned('[part="markdown"] .table');
    await page.click(await page.button("Enlarge"));
    await page.shown("dialog:modal td", "First");
    await isPinned("dialog .table");
    await page.press("Escape");
    await page.gone("dialog");
    await page.hasFocus("Enlarge");
    await page.click(await page.shown("summary", "More"));
    await page.shown("details p", "It was folded.");
    await page.click(await page.shown('[role="doc-noteref"]'));
    await page.shown(".footnotes li:focus", "A note.");
    await page.click(await page.shown('[role="doc-backlink"]'));
    await page.shown('[role="doc-noteref"]:focus', "1");
  },
);

engineTest(
  "a long message of the person is folded, and opens without moving its answer's text away",
  async (page, t) => {
    await open(t, page, [[say("Read.")]]);
    const lines = Array.from({ length: 40 }, (_, at) => `Line ${at + 1}`).join("\n");
    await page.run((text: string) => void document.querySelector("agent-chat")?.send(text), lines);
    await page.shown('[part="markdown"]', "Read.");
    const height = () => page.run(() => findAll(".bubble")[0]?.getBoundingClientRect().height ?? 0);
    const fold = await page.shown('[part~="user"] button[aria-expanded="false"]', "Show all 40 lines");
    const folded = await height();
    assert.ok(folded < 12 * 26, `${folded} px`);
    await page.click(fold);
    await page.shown('[part~="user"] button[aria-expanded="true"]', "Show fewer lines");
    assert.ok((await height()) > 3 * folded);
  },
);

engineTest(
  "conversations are begun, listed, searched, renamed, deleted and brought back; the list over the chat closes with Escape and its button",
  async (page, t) => {
    const instructions = ({ suggest }: { suggest: (texts: string[]) => void }) => {
      suggest(["Why?"]);
      return "Be brief.";
    };
    const turns = [[say("Green.")], [say("Yellow.")], [say("So it is.")]];
    const server = await startServer(t, { turns, agent: { instructions } });
    const row = '[part="conversation"]';
    await page.open(server.url);
    await page.send("Pears?");
    await page.shown('[part="markdown"]', "Green.");
    await page.click(await page.button("Answer again"));
    await page.shown('[part="markdown"]', "Yellow.");
    await page.click(await page.shown('[part="previous"]:enabled'));
    await page.shown('[part="markdown"]', "Green.");
    await page.shown('[part="alternatives"]', "1/2");
    await page.click(await page.shown('[part~="assistant"] [part="suggestion"]', "Why?"));
    await page.shown('[part="markdown"]', "So it is.");
    assert.deepEqual(
      server.model.asked.at(-1)?.messages.map(({ content }) => content),
      ["Pears?", "Green.", "Why?"],
    );
    for (const begin of [
      async () => page.click(await page.button("New conversation")),
      () => page.press("Control+Shift+o"),
    ]) {
      await begin();
      await page.shown('[part="empty"]');
      await page.click(await page.shown(row, "Pears?"));
      await page.shown('[part="markdown"]', "So it is.");
    }
    await page.run(`() => ${fillList(9, 2)}` as never);
    await page.reload();
    await page.shown('[part="markdown"]', "So it is.");
    await page.click(await page.shown(".list-search"));
    await page.type("number 4");
    await page.until((it: string) => findAll(it).length === 1, row);
    await page.focus(await page.shown(row, "Number 4"));
    await page.press("F2");
    await page.shown(".list-name:focus");
    await page.type("My number 4");
    await page.press("Enter");
    await page.focus(await page.shown(row, "My number 4"));
    await page.press("Delete");
    await page.gone(row);
    await page.click(await page.shown('[part="undo"]'));
    await page.driver.resize(600, 800);
    await page.gone(row);
    const entries = await page.run(() => history.length);
    const opened = async () => {
      await page.click(await page.shown('[part="list"]'));
      await page.shown(row, "My number 4");
    };
    await opened();
    await page.press("Escape");
    await page.shown('[part="list"]:focus');
    await opened();
    await page.click(await page.shown('[part="close-list"]'));
    await page.shown('[part="list"]:focus');
    await opened();
    await page.reload();
    await page.gone(row);
    assert.equal(await page.run(() => history.length), entries);
  },
);

engineTest(
  "two tabs show one conversation live, each goes on with it, and the list of one resumes the answer with which the other was closed",
  async (page, t) => {
    const rest = gate();
    const turns = [[say("One!")], [say("Two!")], [say("Half"), wait(rest.opened), say(" and all.")]];
    const server = await open(t, page, turns);
    await page.send("First");
    await page.shown('[part="markdown"]', "One!");
    const { switchTab, closeOther } = await page.openTab(server.url);
    await page.click(await page.shown('[part="conversation"]', "First"));
    await page.shown('[part="markdown"]', "One!");
    await page.send("Second");
    await page.shown('[part="markdown"]', "Two!");
    await switchTab();
    await page.shown('[part="markdown"]', "Two!");
    await page.send("Third");
    await page.shown('[part="markdown"]', "Half");
    await switchTab();
    await page.shown('[part="markdown"]', "Half");
    await page.click(await page.button("New conversation"));
    await page.shown('[part="empty"]');
    await closeOther();
    await page.shown('[part="conversation"] [aria-label="Answering…"]');
    await page.click(await page.shown('[part="conversation"]', "First"));
    await page.shown('[part="markdown"]', "Half");
    await page.button("Stop answering");
    rest.open();
    await page.shown('[part="markdown"]', "Half and all.");
    assert.deepEqual(
      server.model.asked.at(-1)?.messages.map(({ content }) => content),
      ["First", "One!", "Second", "Two!", "Third"],
    );
  },
);

engineTest(
  "what is written during an answer waits over a reload and is sent behind it, and an edit in place stands beside its message",
  async (page, t) => {
    const rest = gate();
    const turns = [[say("Half"), wait(rest.opened), say(" and all.")], [say("Second.")], [say("Changed.")]];
    const server = await open(t, page, turns);
    await page.send("One");
    await page.shown('[part="markdown"]', "Half");
    await page.send("Two");
    await page.shown(".pending-message", "Two");
    await page.reload();
    await page.shown(".pending-message", "Two");
    rest.open();
    await page.shown('[part="markdown"]', "Second.");
    await page.gone(".pending-message");
    await page.focus(await page.shown(FIELD));
    await page.press("ArrowUp");
    await page.shown("#edit:focus");
    await page.type("!");
    await page.press("Enter");
    await page.shown('[part="markdown"]', "Changed.");
    await page.shown('[part="alternatives"]', "2/2");
    assert.deepEqual(
      server.model.asked.map(({ messages }) => messages.map(({ content }) => content)),
      [["One"], ["One", "Half and all.", "Two"], ["One", "Half and all.", "Two!"]],
    );
  },
);

engineTest("the theme is toggled, and kept over a reload", async (page, t) => {
  await open(t, page, []);
  const background = () =>
    page.run(() =>
      findAll("agent-chat")
        .map((chat) => getComputedStyle(chat).backgroundColor)
        .join(),
    );
  const before = await background();
  await page.click(await page.shown('[part="theme-toggle"]'));
  await page.shown("agent-chat[theme]:not([theme=auto])");
  const toggled = await background();
  assert.notEqual(toggled, before);
  await page.reload();
  await page.shown('[part="suggestion"]');
  assert.equal(await background(), toggled);
});

engineTest("an answer is copied as it looks, and rated with a reason that the page hears of", async (page, t) => {
  await open(t, page, [[say("**Pong**")]]);
  await page.run(() => {
    document.querySelector("agent-chat")?.setAttribute("feedback", "");
    document.addEventListener("agent-chat-feedback", ({ rating, reason, comment }) => {
      document.title = [rating, reason, comment].join(" ");
    });
    document.addEventListener("paste", ({ clipboardData }) => {
      document.title = clipboardData?.getData("text/html") ?? "";
    });
  });
  await page.send("Ping");
  await page.shown("strong", "Pong");
  await page.click(await page.button("Copy answer"));
  await page.button("Copied");
  const field = await page.shown(FIELD);
  await page.click(field);
  await page.press("Control+v");
  await page.until(() => document.title.includes("<strong>Pong</strong>"));
  await page.until((it: HTMLTextAreaElement) => it.value === "**Pong**", field);
  await page.click(await page.button("Bad answer"));
  await page.click(await page.shown('input[value="incomplete"]'));
  await page.click(await page.shown('textarea[name="comment"]'));
  await page.type("More!");
  await page.click(await page.shown('[part="feedback-form"] [type="submit"]'));
  await page.until(() => document.title === "down incomplete More!");
});

engineTest(
  "colours of code rest where the browser skips it, and are there where somebody scrolls to",
  async (page, t) => {
    const blocks = Array.from({ length: 200 }, (_, index) => `\`\`\`ts\nconst number${index} = 1;\n\`\`\`\n`);
    await open(t, page, [[say(blocks.join(""))]]);
    await page.send("Go");
    await page.until(() => findAll('[part="messages"] pre').length === 200);
    await page.button("Send message");
    // The first scroll may be undone while the chat still follows the answer.
    const scrolledTo = (index: number, isPainted: boolean) => {
      findAll('[part="messages"] pre')[index]?.scrollIntoView();
      const keywords = [...(CSS.highlights.get("agent-chat-keyword") ?? [])];
      return keywords.some(({ startContainer: { textContent } }) => textContent?.includes("number48 ")) === isPainted;
    };
    await page.until(scrolledTo, 48, true);
    await page.until(scrolledTo, 190, false);
    await page.until(scrolledTo, 48, true);
  },
);

/** A megabyte of text, in many sections. */
const LONG = Array.from({ length: 1_000 }, (_, index) => `${"word ".repeat(200)}number${index}.`);

engineTest(
  "Ctrl+F finds what is not laid out, in an early message as in a long one, and scrolls to it",
  async (page, t) => {
    // Browsers skip a section's layout a frame or two after it was rendered.
    const isLeftOut = (place: Handle) =>
      page.until((it: Element) => !it.checkVisibility({ contentVisibilityAuto: true }), place);
    // The last two exchanges always have a layout.
    const turns = [[say("The colour is **ultramarine**.")], [say("As **you** like.")], [say(LONG.join("\n\n"))]];
    await open(t, page, turns);
    await page.send("Which colour?");
    const early = await page.shown("strong", "ultramarine");
    await page.button("Send message");
    await page.send("Fine");
    await page.shown("strong", "you");
    await page.button("Send message");
    await page.send("Tell me more");
    await page.shown("p", "number999.");
    await page.button("Send message");
    const middle = (await page.run(() => findAll("p").find((it) => it.textContent.includes("number500.")))) as unknown;
    // While it is announced, the text occurs twice.
    await page.until(() => findAll('[role="status"] p').length === 0);
    for (const [text, place] of [
      ["ultramarine", early],
      ["number500.", middle as Handle],
    ] as const) {
      await isLeftOut(place);
      await page.driver.find(text, () =>
        page.until((it: Element) => {
          const { top, bottom } = it.getBoundingClientRect();
          return top < innerHeight && bottom > 0;
        }, place),
      );
    }
  },
);

engineTest(
  "a page that is its owner's has their logo and colour, and leads who is signed out to the way in",
  async (page, t) => {
    const { url } = await startServer(t, {
      turns: [],
      folder: temporaryProject(t, { "logo.svg": LOGO }),
      agent: { chat: { title: "Acme Help", logo: "logo.svg", accent: "#0a7d4f", theme: "light" } },
      authenticate: ({ token }: { token?: string | undefined }) => {
        if (!token) throw new Unauthorized();
        return { id: token, name: "Ada" };
      },
    });
    await page.open(url);
    await page.shown(".agent", "Acme Help");
    await page.until(() => findAll(".greeting .logo").some((it) => (it as HTMLImageElement).naturalWidth > 0));
    const way = await page.shown(".way-in");
    assert.equal(await page.run((it: Element) => getComputedStyle(it).backgroundColor, way), "rgb(10, 125, 79)");
    await page.send("Where is it?");
    await page.until(() => findAll(".way-in:focus").length > 0);
    await page.run(() => Object.assign(document.querySelector("agent-chat") as object, { userToken: "ada" }));
    await page.shown(".signed-in", "Ada");
    assert.equal(await page.run((it: HTMLTextAreaElement) => it.value, await page.shown(FIELD)), "Where is it?");
  },
);

engineTest(
  "a tool asks before it acts: approved, declined with a reason, and an answer that was cut goes on",
  async (page, t) => {
    const ran: unknown[] = [];
    const refund = tool({
      name: "refund",
      description: "Pays back.",
      parameters: { type: "object", properties: { sum: { type: "number" } } },
      needsApproval: true,
      approvalText: ({ sum }) => `Refund ${sum} €?`,
      execute: (args) => ran.push(args),
    });
    const cut: Turn = [say("Paid"), end("length")];
    const turns = [
      [call("a", "refund", { sum: 5 })],
      cut,
      [say(" back.")],
      [call("b", "refund", { sum: 6 })],
      [say("As you like.")],
    ];
    const server = await startServer(t, { turns, agent: { tools: [refund] } });
    await page.open(server.url);
    await page.send("Refund");
    await page.shown('[part="approval"] .question', "Refund 5 €?");
    await page.focus(await page.shown('[part="approve"]'));
    await page.press("Enter");
    await page.click(await page.shown('[part="continue"]'));
    await page.shown('[part="markdown"]', "Paid back.");
    await page.send("Once more");
    // Pointer clicks count only once the card has not moved for a while.
    await page.shown('[part="approval"]:not([data-settling])');
    await page.click(await page.shown('[part="decline"]'));
    await page.shown(".reason");
    await page.type("Too much");
    await page.press("Enter");
    await page.shown('[part="markdown"]', "As you like.");
    assert.deepEqual(ran, [{ sum: 5 }]);
    assert.match(JSON.stringify(server.model.asked.at(-1)?.messages), /Too much/);
  },
);
