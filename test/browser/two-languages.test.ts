import { after, test } from "node:test";
import type { AgentChat } from "../../widget/agent-chat.ts";
import { launchBrowser, openPage } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { say } from "../support/scripted-provider.ts";
import { sitePage, startSite } from "../support/site.ts";
import { startServer } from "../support/start-server.ts";
import { failOnComplaints } from "./chat-page.ts";

const browser = await launchBrowser({ after });

test("two chats of two languages in one page: the tools of code come in the language of each", async (t) => {
  const code = say("```js\nx();\n```");
  const server = await startServer(t, { turns: [[code], [code]] });
  const chats = ["de", "fr"].map((lang) => `<agent-chat id="${lang}" lang="${lang}"></agent-chat>`);
  const site = await startSite(t, {
    "/": sitePage(`<script src="${server.url}/widget.js"></script>${chats.join("")}`),
  });
  const { page, complaints } = await openPage(t, browser);
  failOnComplaints(t, complaints);
  const tools = gate();
  await page.route("**/chunks/tools-*", async (route) => {
    await tools.opened;
    await route.continue();
  });
  await page.goto(site.url);
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
