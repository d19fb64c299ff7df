import { after, type TestContext, test } from "node:test";
import type { AgentChat } from "../../widget/agent-chat.ts";
import { launchBrowser, openPage } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { say } from "../support/scripted-provider.ts";
import { sitePage, startSite } from "../support/site.ts";
import { startServer } from "../support/start-server.ts";
import { failOnComplaints } from "./chat-page.ts";

const browser = await launchBrowser({ after });

/** A page with a German chat and a French one, which is not opened yet. */
async function twoChats(t: TestContext, answer: string) {
  const server = await startServer(t, { turns: [[say(answer)], [say(answer)]] });
  const chats = ["de", "fr"].map(
    (lang) => `<agent-chat id="${lang}" lang="${lang}" style="height: 340px"></agent-chat>`,
  );
  const site = await startSite(t, {
    "/": sitePage(`<script src="${server.url}/widget.js"></script>${chats.join("")}`),
  });
  const { page, complaints } = await openPage(t, browser);
  failOnComplaints(t, complaints, /ERR_FAILED/);
  return { page, url: site.url, of: (id: string) => page.locator(`#${id}`) };
}

test("two chats of two languages in one page: the tools of code come in the language of each", async (t) => {
  const { page, url } = await twoChats(t, "```js\nx();\n```");
  const tools = gate();
  await page.route("**/chunks/tools-*", async (route) => {
    await tools.opened;
    await route.continue();
  });
  await page.goto(url);
  await page.locator("#de").getByPlaceholder("Nachricht an").waitFor();
  await page.locator("#fr").getByPlaceholder("Écrire à").waitFor();
  for (const id of ["#de", "#fr"]) {
    await page.locator(id).evaluate((chat) => (chat as AgentChat).send("Code"));
    await page.locator(id).locator(".code").waitFor();
  }
  tools.open();
  await page.locator("#de").getByRole("button", { name: "Zeilen umbrechen" }).waitFor();
  await page.locator("#fr").getByRole("button", { name: "Retour à la ligne" }).waitFor();
});

test("what a press has done is said in the language of its own chat, whichever is drawn meanwhile", async (t) => {
  const image = "![](https://images.example/a.png)";
  const { page, url, of } = await twoChats(t, `\`\`\`\nx\n\`\`\`\n\n|A|\n|-|\n|1|\n\n${image}`);
  await page.goto(url);
  for (const [id, placeholder] of Object.entries({ de: "Nachricht an", fr: "Écrire à" })) {
    await of(id).getByPlaceholder(placeholder).waitFor();
    await of(id).evaluate((chat) => (chat as AgentChat).send("Show me"));
    await of(id).getByRole("button", { name: "CSV" }).waitFor();
  }
  await page.evaluate(() => {
    navigator.clipboard.writeText = async () => {
      const french = document.querySelector<AgentChat>("#fr");
      if (french) french.disclaimer += ".";
      await french?.updateComplete;
    };
  });
  await page.route("https://images.example/**", async (route) => {
    await page.evaluate(() => navigator.clipboard.writeText(""));
    await route.abort();
  });
  const german = of("de").locator('[part="markdown"]');
  await german.locator(".copy").click();
  await german.locator(".copy").getByText("Kopiert").waitFor();
  await german.getByRole("button", { name: "CSV" }).click();
  await german.locator(".table button").getByText("Kopiert").waitFor();
  await german.getByRole("button", { name: "images.example" }).click();
  await german.getByText("Das Bild konnte nicht geladen werden").waitFor();
});
