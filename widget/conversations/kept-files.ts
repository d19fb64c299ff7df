/**
 * The data of files, stored apart from the rows: it is written once, however often a conversation is saved. Loaded if a
 * conversation has files. A file is identified by its digest, which a state contains, or by when and where it was sent,
 * if there is no answer yet or the provider stores the conversation. Its row has one of these keys.
 */

import { type Attachment, type FileType, isTextType } from "../../server/protocol/attachments.ts";
import type { OmittedFile } from "../../server/protocol/chat.ts";
import { type NamedFile, type StoredState, withParts } from "./branch-states.ts";
import { type Conversation, conversationOf, findMessage } from "./conversation.ts";
import { completed, FILES, SUMMARIES, settled, type Transact } from "./idb.ts";
import type { Message, SentFile, UserMessage } from "./messages.ts";
import type { StoredConversation, Summary } from "./row.ts";
import type { SentFiles } from "./sent-files.ts";
import type { Fill } from "./store.ts";

/** Maximum number of bytes stored per conversation: the oldest files are left out first. */
const MAX_BYTES = 20 * 1024 * 1024;

/** Maximum number of bytes for all conversations together. */
const MAX_BYTES_OF_ALL = 10 * MAX_BYTES;

/** In `FILES`, beginning with the id: earlier builds, which know no files, delete and copy them with their conversation. */
const fileKey = (id: string, name: string): string => `${id} #${name}`;

/** The keys of all files of a conversation. */
export const rangeOf = (id: string): IDBKeyRange => IDBKeyRange.bound(fileKey(id, ""), fileKey(id, "\uffff"));

interface FileFacts extends Pick<OmittedFile, "bytes"> {
  readonly mime_type: FileType;
}

/** A file of the conversation. */
interface KeptFile extends FileFacts {
  /** The keys that its row may have. */
  readonly keys: readonly string[];
  /** `data:` URL; absent if the data is not here. */
  readonly url: string | undefined;
}

interface FileRow {
  readonly id: string;
  readonly file: Blob;
}

/** Stores the files that are not stored yet, and deletes those that the conversation no longer has. */
export async function keep(transact: Transact, conversation: StoredConversation): Promise<void> {
  const { id } = conversation;
  const files = filesOf(conversation);
  const isAdded = await transact("readwrite", [FILES, SUMMARIES], async (transaction) => {
    const table = transaction.objectStore(FILES);
    const [keys, summary] = await Promise.all([
      settled(table.getAllKeys(rangeOf(id))),
      settled(transaction.objectStore(SUMMARIES).get(id)),
    ]);
    // The conversation was deleted in the meantime.
    if (!summary) return false;
    const known = files.map((file) => file.keys.find((key) => keys.includes(key)));
    for (const key of keys) if (!known.includes(String(key))) table.delete(key);
    const added = files.filter(({ url }, index) => url && !known[index]);
    for (const { keys, url = "" } of added) table.put({ id: keys[0], file: blobOf(url) });
    // The page may be left in the next moment.
    transaction.commit();
    await completed(transaction);
    return added.length > 0;
  });
  if (isAdded) await transact("readwrite", [FILES, SUMMARIES], dropOldest);
}

/** Deletes files until the rest fits. Those of the conversations that were saved last stay. */
async function dropOldest(transaction: IDBTransaction): Promise<void> {
  const table = transaction.objectStore(FILES);
  const [rows, summaries]: [FileRow[], Summary[]] = await Promise.all([
    settled(table.getAll()),
    settled(transaction.objectStore(SUMMARIES).getAll()),
  ]);
  const savedAt = new Map(summaries.map(({ id, updatedAt }) => [id, updatedAt]));
  const files = rows.flatMap(({ id, file }) =>
    file instanceof Blob ? [{ id, size: file.size, at: savedAt.get(id.replace(/ .*/, "")) ?? 0 }] : [],
  );
  let room = MAX_BYTES_OF_ALL;
  for (const { id, size } of files.toSorted((a, b) => b.at - a.at)) {
    room -= size;
    if (room < 0) table.delete(id);
  }
  await completed(transaction);
}

/** Deletes all files of all conversations. Resolves with whether there were any. */
export function dropAll(transact: Transact): Promise<boolean> {
  return transact("readwrite", [FILES], async (transaction) => {
    const table = transaction.objectStore(FILES);
    const keys = (await settled(table.getAllKeys())).filter((key) => String(key).includes(fileKey("", "")));
    for (const key of keys) table.delete(key);
    await completed(transaction);
    return keys.length > 0;
  });
}

/** The conversation to be drawn before its files are read: `isKept` marks those that have a row under one of these keys. */
export function expecting(conversation: StoredConversation, keys: readonly unknown[]): StoredConversation {
  const there = filesOf(conversation).filter((file) => file.keys.some((key) => keys.includes(key)));
  return withFilesOf(conversation, (file, keys) =>
    there.some((it) => it.keys.includes(keys[0] ?? "")) ? { ...file, isKept: true } : file,
  );
}

/** Reads all data that is stored and complete. */
export async function read(transact: Transact, conversation: StoredConversation): Promise<Fill> {
  const { id, tree, states, root } = conversation;
  const rows: FileRow[] = await transact("readonly", [FILES], (transaction) =>
    settled(transaction.objectStore(FILES).getAll(rangeOf(id))),
  );
  const found = new Map<string, { readonly file: Blob; readonly url: string }>();
  for (const wanted of filesOf(conversation)) {
    const { file } = rows.find((row) => wanted.keys.includes(row.id) && isWhole(row.file, wanted)) ?? {};
    const url = file && (await dataUrlOf(file));
    if (url) for (const key of wanted.keys) found.set(key, { file, url });
  }
  const fill = (part: NamedFile): NamedFile => {
    const { omitted } = part;
    const { url } = found.get(fileKey(id, omitted.sha256)) ?? {};
    if (!url) return part;
    if (omitted.mime_type.startsWith("image/")) return { type: "image_url", image_url: { url }, omitted };
    return { type: "file", file: { filename: omitted.name ?? "", file_data: url }, omitted };
  };
  const filled = withFilesOf(conversation, (file, [key = ""]) => {
    const data = found.get(key)?.file;
    return { ...file, isKept: data !== undefined, picture: isPicture(file) ? data : undefined };
  });
  const attachments = new Map<string, readonly Attachment[]>();
  const keys = keysOf(conversation);
  for (const message of tree) {
    const urls = keys.get(message.id)?.flatMap(([key = ""]) => found.get(key)?.url ?? []) ?? [];
    // A message is only sent again with all of its files.
    if (message.role === "user" && urls.length > 0 && urls.length === message.files.length) {
      attachments.set(
        message.id,
        urls.map((url, index) => attachmentOf(message.files[index] as SentFile, url)),
      );
    }
  }
  const whole = { ...filled, ...withParts({ states, root }, fill), attachments };
  return (now, files) => fillIn(now, files, conversation, whole, fill);
}

/** Puts the data that was `read` into the current conversation, where that is still as it was `before`. */
function fillIn(
  now: Conversation,
  files: SentFiles,
  before: StoredConversation,
  read: StoredConversation,
  fill: (part: NamedFile) => NamedFile,
): Conversation {
  const found = new Map(read.tree.map((message) => [message.id, message]));
  const tree = now.tree.map((message) => {
    const it = found.get(message.id);
    if (!it || !isSame(message, it)) return withParts(message, fill);
    const attachments = read.attachments?.get(message.id);
    if (attachments) files.add(message.id, attachments);
    return it;
  });
  const same = Object.entries(read.states).filter(([id]) => now.states[id] === before.states[id]);
  const states = { ...now.states, ...Object.fromEntries(same) };
  const root = now.root === before.root ? read.root : now.root;
  return conversationOf({ ...now, tree, states, root });
}

/** Rows have neither data nor pictures of files: takes them from `before`. Forgets the files of other messages. */
export function withSent(now: Conversation, before: Conversation, files: SentFiles): Conversation {
  const known = new Map(before.tree.map((message) => [message.id, message]));
  const pictures = new Map(partsOf(before.tree).map((part) => [part.omitted.sha256, part]));
  const withData = (part: NamedFile) => pictures.get(part.omitted.sha256) ?? part;
  const tree = now.tree.map((message) => {
    const sent = known.get(message.id);
    return isSame(message, sent) ? { ...message, files: (sent as UserMessage).files } : withParts(message, withData);
  });
  for (const id of files.all.keys()) if (!isSame(findMessage(now, id), known.get(id))) files.delete(id);
  return conversationOf({ ...now, tree });
}

/** Whether both are the same message of the user: another page load may have given its id to another one. */
function isSame(a: Message | undefined, b: Message | undefined): boolean {
  return a?.role === "user" && b?.role === "user" && a.at === b.at;
}

/** The files of a conversation that there is room for, newest first. */
function filesOf(conversation: StoredConversation): readonly KeptFile[] {
  const { id, tree, states, root, attachments } = conversation;
  const all = new Map<string, KeptFile>();
  const add = (keys: readonly string[], { mime_type, bytes }: FileFacts, url = "") => {
    const [name = ""] = keys;
    const known = all.get(name);
    // A file that is also in a newer message counts as part of that.
    all.delete(name);
    const both = new Set([...(known?.keys ?? []), ...keys]);
    all.set(name, { keys: [...both], mime_type, bytes, url: url || known?.url });
  };
  const addParts = (value: unknown) => {
    for (const part of partsOf(value)) add([fileKey(id, part.omitted.sha256)], part.omitted, urlOf(part));
  };
  const keys = keysOf(conversation);
  addParts(root);
  for (const message of tree) {
    addParts(states[message.id]);
    // The pictures of tools.
    if (message.role === "assistant") addParts(message);
    if (message.role !== "user") continue;
    const sent = attachments?.get(message.id) ?? [];
    message.files.forEach(({ mediaType, size = 0 }, index) => {
      const data = sent[index]?.data;
      const url = data && `data:${mediaType};base64,${data}`;
      add(keys.get(message.id)?.[index] ?? [], { mime_type: mediaType, bytes: size }, url);
    });
  }
  let room = MAX_BYTES;
  const newest = [...all.values()].reverse();
  const end = newest.findIndex(({ bytes }) => {
    room -= bytes;
    return room < 0;
  });
  return end < 0 ? newest : newest.slice(0, end);
}

/** The keys of the files of each user message: the one with the digest comes first. */
function keysOf({ id, tree, states }: StoredConversation): ReadonlyMap<string, readonly (readonly string[])[]> {
  const keys = new Map<string, readonly (readonly string[])[]>();
  for (const message of tree) {
    if (message.role !== "user" || message.files.length === 0) continue;
    const answers = tree.filter(({ parent }) => parent === message.id);
    const [digests = []] = answers.flatMap((answer) => digestsOf(message.files, states[answer.id]));
    keys.set(
      message.id,
      message.files.map((_, index) =>
        [digests[index] ?? [], `${message.at}.${index}`].flat().map((name) => fileKey(id, name)),
      ),
    );
  }
  return keys;
}

/** The digests of files, if the state after the answer has exactly these files. Text files are in it as text, without one. */
function digestsOf(files: readonly SentFile[], state: StoredState | undefined): [digests: string[]] | [] {
  const messages = [...(state?.added ?? []), ...(state?.rest.open?.messages ?? [])];
  const parts = partsOf(messages.findLast(({ role }) => role === "user")).map(({ omitted }) => omitted);
  const digests: string[] = [];
  for (const [index, { mediaType, size }] of files.entries()) {
    if (isTextType(mediaType)) continue;
    const { mime_type, bytes, sha256 = "" } = parts.shift() ?? {};
    if (mime_type !== mediaType || bytes !== size) return [];
    digests[index] = sha256;
  }
  return parts.length === 0 ? [digests] : [];
}

function partsOf(state: unknown): readonly NamedFile[] {
  const parts: NamedFile[] = [];
  withParts(state, (part) => {
    parts.push(part);
    return part;
  });
  return parts;
}

function urlOf(part: NamedFile): string | undefined {
  if (part.type === "omitted") return undefined;
  return part.type === "file" ? part.file.file_data : part.image_url.url;
}

/** Whether it is as it was written: any other file would change the state, which the server would then refuse. */
function isWhole(file: unknown, { bytes, mime_type }: KeptFile): boolean {
  return file instanceof Blob && file.size === bytes && file.type === mime_type;
}

const isPicture = ({ mediaType }: SentFile) => mediaType.startsWith("image/");

const attachmentOf = (file: SentFile, url: string): Attachment => ({
  type: isPicture(file) ? "image" : "file",
  name: file.name,
  mime_type: file.mediaType,
  data: base64Of(url),
});

const base64Of = (url: string) => url.slice(url.indexOf(",") + 1);

function blobOf(url: string): Blob {
  const chars = atob(base64Of(url));
  const bytes = new Uint8Array(chars.length);
  for (let index = 0; index < chars.length; index += 1) bytes[index] = chars.charCodeAt(index);
  return new Blob([bytes], { type: url.slice("data:".length, url.indexOf(";")) });
}

/** `undefined` where the browser has lost it. */
function dataUrlOf(file: Blob): Promise<string | undefined> {
  const reader = new FileReader();
  return new Promise((resolve) => {
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => resolve(undefined);
    reader.readAsDataURL(file);
  });
}

/** `change` gets the keys of a file. */
function withFilesOf(
  conversation: StoredConversation,
  change: (file: SentFile, keys: readonly string[]) => SentFile,
): StoredConversation {
  const keys = keysOf(conversation);
  const tree = conversation.tree.map((message) => {
    if (message.role !== "user" || message.files.length === 0) return message;
    const files = message.files.map((file, index) => change(file, keys.get(message.id)?.[index] ?? []));
    return { ...message, files };
  });
  return { ...conversation, tree };
}
