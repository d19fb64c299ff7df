/** A client of a server, as an element has it but without the element, and its reports. */

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
  /** The store of conversations, in place of the browser's database. */
  store?: ConversationStore;
  /** Whether conversations are stored. Default: only if there is a `store`. */
  persist?: boolean;
  id?: string;
  /** Whether the store is a library whose conversations are listed. */
  keepsAll?: boolean;
  userToken?: ClientOptions["userToken"];
  metadata?: ClientOptions["metadata"];
  /** The condition to wait for. Default: the server has described its agent. */
  until?: (client: Client) => boolean;
}

export interface TestClient {
  client: Client;
  /** The events reported to the page, one line each. */
  reports: string[];
  drafts: Draft[];
  /** Resolves when the condition is true, which is checked after each change. */
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

/** Sends queued messages like the element. `asked`: ids of those that the user wants to be sent now. */
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

/** All conversations of a server that the browser has stored. */
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

/** The texts of the messages; other blocks are represented by their type. */
export const textsOf = (messages: readonly Message[]): string[] =>
  messages.map((message) =>
    message.role !== "assistant"
      ? message.text
      : message.blocks.map((block) => (block.type === "text" ? block.text : block.type)).join(" "),
  );
