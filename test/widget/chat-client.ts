/** A client of a server as an element has one, without the element; and what it has reported. */

import "./browser-stubs.ts";
import type { TestContext } from "node:test";
import type { OutgoingMessage } from "../../widget/session/chat-session.ts";
import { Client, type ClientOptions, type Draft } from "../../widget/session/client.ts";
import type { AssistantMessage, Message } from "../../widget/session/messages.ts";
import { sendPending } from "../../widget/session/pending.ts";
import type { ConversationStore } from "../../widget/session/store.ts";
import { within } from "../support/deadline.ts";

export interface ClientSetup {
  url: string;
  siteKey?: string;
  /** With one, the conversation is kept there. */
  store?: ConversationStore;
  id?: string;
  /** Whether the store is a library that is listed. */
  keepsAll?: boolean;
  userToken?: ClientOptions["userToken"];
  metadata?: ClientOptions["metadata"];
  /** What to wait for; until the server has described its agent. */
  until?: (client: Client) => boolean;
}

export interface TestClient {
  client: Client;
  /** What the page was informed of, one line for each event. */
  reports: string[];
  drafts: Draft[];
  /** Resolves when the condition holds; it is asked after each change. */
  until(condition: (client: Client) => boolean): Promise<void>;
}

export async function openClient(
  t: TestContext,
  {
    url,
    siteKey = "",
    store,
    id = "",
    keepsAll = false,
    userToken,
    metadata,
    until: isOpen = ({ phase }) => phase === "ready",
  }: ClientSetup,
): Promise<TestClient> {
  const reports: string[] = [];
  const drafts: Draft[] = [];
  const waiting = new Set<() => void>();
  const client = new Client({
    server: new URL(url),
    id,
    siteKey,
    userToken,
    metadata,
    ...(store && { store }),
    keepsAll: () => keepsAll,
    onChange: () => {
      if (client.session.pending.length > 0) void sendPendingOf(client);
      for (const check of waiting) check();
    },
    onReady: () => {},
    onDraft: (draft) => drafts.push(draft),
    onToken: (text, messageId) => reports.push(`${messageId} ${text}`),
    onTool: ({ callId, status }, messageId) => reports.push(`${messageId} ${callId} ${status}`),
    onAnswerEnd: ({ id: messageId, status }) => reports.push(`${messageId} ${status}`),
  });
  const until = (condition: (client: Client) => boolean) =>
    within(
      new Promise<void>((resolve) => {
        const check = () => {
          if (!condition(client)) return;
          waiting.delete(check);
          resolve();
        };
        waiting.add(check);
        check();
      }),
      String(condition),
    );
  t.after(() => client.close());
  client.open(store !== undefined);
  await until(isOpen);
  await client.keeper.restored;
  return { client, reports, drafts, until };
}

/** As the element does. `asked`: ids of what a person wants to be sent now. */
export function sendPendingOf(client: Client, asked?: readonly string[]): Promise<void> {
  const admit = async () => ((await client.keeper.claim()) ? undefined : "elsewhere");
  return sendPending(client, { asked, admit, send: (message) => client.session.send(message) });
}

export const pendingIds = ({ session }: Client): readonly string[] => session.pending.map(({ id }) => id);

export const text = (message: string): OutgoingMessage => ({ text: message, attachments: [], files: [] });

export const lastAnswer = ({ session }: Client): AssistantMessage | undefined => {
  const last = session.messages.at(-1);
  return last?.role === "assistant" ? last : undefined;
};

/** Texts of the messages, as they are read. */
export const textsOf = (messages: readonly Message[]): string[] =>
  messages.map((message) =>
    message.role !== "assistant"
      ? message.text
      : message.blocks.map((block) => (block.type === "text" ? block.text : block.type)).join(" "),
  );
