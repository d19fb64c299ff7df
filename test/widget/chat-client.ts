/** A client of a server as an element has one, without the element; and what it has reported. */

import "fake-indexeddb/auto";
import "./browser-stubs.ts";
import type { TestContext } from "node:test";
import type { OutgoingMessage } from "../../widget/conversations/conversation.ts";
import { IndexedDbStore } from "../../widget/conversations/indexed-db.ts";
import type { AssistantMessage, Message } from "../../widget/conversations/messages.ts";
import { sendQueued } from "../../widget/conversations/send-queued.ts";
import type { ConversationStore } from "../../widget/conversations/store.ts";
import type { Draft } from "../../widget/conversations/tab-slot.ts";
import { Client, type ClientOptions } from "../../widget/session/client.ts";
import { within } from "../support/deadline.ts";

export interface ClientSetup {
  url: string;
  siteKey?: string;
  /** Where conversations are kept, in place of the browser's database. */
  store?: ConversationStore;
  /** Whether they are kept; else they are with a `store`. */
  persist?: boolean;
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
    persist = store !== undefined,
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
      if (client.session.queued.length > 0) void sendQueuedOf(client);
      for (const check of waiting) check();
    },
    onReady: () => {},
    onDraft: (draft) => drafts.push(draft),
    onSwitch: (draft) => drafts.push(draft),
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
  client.open(persist);
  await until(isOpen);
  await client.library.restored;
  return { client, reports, drafts, until };
}

/** As the element does. `asked`: ids of what a person wants to be sent now. */
export function sendQueuedOf(client: Client, asked?: readonly string[]): Promise<void> {
  const { session } = client;
  const isReady = () => session === client.session && client.isReady;
  return sendQueued(session, {
    asked,
    isReady,
    admit: async () => undefined,
    send: (message) => session.send(message),
  });
}

export const queuedIds = ({ session }: Client): readonly string[] => session.queued.map(({ id }) => id);

/** Everything that the browser has kept of the conversations of a server. */
export async function keptAt(url: string) {
  const store = new IndexedDbStore(new URL(url));
  const loaded = await Promise.all((await store.list()).map(({ id }) => store.load(id)));
  return loaded.flatMap((it) => (it && typeof it === "object" ? [it.conversation] : []));
}

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
