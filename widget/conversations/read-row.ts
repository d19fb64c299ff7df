/**
 * Reads stored conversations. Loaded when the first one is read. Scripts of the site, tools of the browser and other
 * versions of the chat may have changed what is stored: all of it is validated before it is shown.
 */

import { MEDIA_TYPES, TEXT_TYPES } from "../../server/protocol/attachments.ts";
import { asString, isRecord, type Json, records } from "../../server/protocol/json.ts";
import {
  type Conversation,
  type ConversationData,
  conversationOf,
  dataOf,
  type QueuedMessage,
} from "./conversation.ts";
import { completed, FILES, partsOf, ROWS, SUMMARIES, settled, TABLES, type Transact } from "./idb.ts";
import { expecting, rangeOf, read as readFiles, withSent } from "./kept-files.ts";
import type { AssistantMessage, Block, Message } from "./messages.ts";
import { fold } from "./operations.ts";
import { type Entry, type Row, type StoredConversation, type Summary, UNREADABLE, VERSION } from "./row.ts";
import type { Loaded, ReadRow } from "./store.ts";

// Further code that the store needs only if something is stored already.
export { deleteFrom, rowsOf } from "./older-rows.ts";
export { shrink } from "./shrink.ts";

/** The latest time that a `Date` can have, in milliseconds. */
const MAX_TIME = 8.64e15;

/** Maximum size of all stored conversations together, in characters. */
export const MAX_SIZE = 60_000_000;

export async function read(transact: Transact, id: string): Promise<Loaded | typeof UNREADABLE | undefined> {
  const [rows, summary, queue, files] = await transact("readonly", TABLES, (transaction) =>
    Promise.all([
      settled(transaction.objectStore(ROWS).getAll(partsOf(id)) as IDBRequest<(Row & Entry & Answer)[]>),
      settled<Summary | undefined>(transaction.objectStore(SUMMARIES).get(id)),
      settled(transaction.objectStore(FILES).get(id)),
      settled(transaction.objectStore(FILES).getAllKeys(rangeOf(id))),
    ]),
  );
  const row = rows.find((it) => it.id === id);
  const entries = rows.filter((it) => it.id.startsWith(`${id} op `));
  const answer = rows.find((it) => it.id === `${id} answer`);
  if (!row && entries.length > 0) {
    // A page that was left has appended something here after another tab had deleted the conversation.
    await transact("readwrite", TABLES, (transaction) => {
      for (const name of TABLES) transaction.objectStore(name).delete(partsOf(id));
      return completed(transaction);
    });
    return undefined;
  }
  if (!row) return summary && UNREADABLE;
  const found = fromRow(migrated(row, answer, queue));
  if (found === UNREADABLE) return found;
  const whole = { ...found, ...dataOf(applySound(conversationOf(found), entries)) };
  const loaded = { row: found, entries, conversation: whole, apply: applySound };
  if (files.length === 0) return loaded;
  const expected = expecting(whole, files);
  return {
    ...loaded,
    row: expecting(found, files),
    conversation: expected,
    withFiles: () => readFiles(transact, expected),
  };
}

/** Applies the operations of other tabs, except damaged ones. */
export function applySound(from: Conversation, entries: readonly Entry[]): Conversation {
  const whole = fold(from, entries);
  // If `from` is damaged already, by the page or the server, the operations of others are not left out.
  if (isSound(whole) || !isSound(from)) return whole;
  return entries.reduce((now, entry) => {
    const next = fold(now, [entry]);
    return isSound(next) ? next : now;
  }, from);
}

/** Version 5 stored the running answer and the queue beside the row. */
interface Answer {
  readonly revision?: number;
  readonly run?: Row["run"];
  readonly answer?: Message;
}

/** Converts a row of an older version, if that can be read, to the current one. */
export function migrated(row: Row, answer: Answer | undefined, queue: unknown): Row {
  if (row.version !== 5 || !Array.isArray(row.tree)) return row;
  const { revision = 0 } = row as Row & { readonly revision?: number };
  const isNewer = (answer?.revision ?? 0) > revision;
  const rename = (message: Message & { readonly pending?: readonly string[] }) => {
    const { pending, ...rest } = { ...message };
    return pending ? ({ ...rest, queued: pending } as Message) : message;
  };
  const tree = row.tree
    .map((it) => (isNewer && it?.id === answer?.answer?.id ? (answer?.answer as Message) : it))
    .map(rename);
  const run = isNewer ? answer?.run : row.run;
  const last = tree.find((it) => it?.id === row.head);
  const position = run && { ...run, ...(last?.role === "assistant" && { answer: last.id }) };
  // A tab may have been closed before it took sent messages out of the queue.
  const sent = new Set(tree.flatMap((it) => (it?.role === "user" && it.queued) || []));
  const queued = queuedIn(isRecord(queue) ? queue.pending : undefined).filter(({ id }) => !sent.has(id));
  const whole = { ...row, version: VERSION, clock: 0, queued, run: position, tree };
  return isReadable(whole) || !isNewer ? whole : migrated(row, undefined, queue);
}

/** The queued messages, without damaged ones. */
function queuedIn(list: unknown): readonly QueuedMessage[] {
  const hasText = (it: Json, name: string) => typeof it[name] === "string";
  return records(list)
    .filter((it) => hasText(it, "id") && hasText(it, "text"))
    .map((it) => ({ ...it, files: records(it.files).filter((file) => hasText(file, "name")) }) as never);
}

/** Resolves with a function that restores all of it as it was. */
export async function copy(transact: Transact, id: string): Promise<() => Promise<void>> {
  const found = await transact("readonly", TABLES, (transaction) =>
    Promise.all(TABLES.map((name) => settled<object[]>(transaction.objectStore(name).getAll(partsOf(id))))),
  );
  return () =>
    transact("readwrite", TABLES, (transaction) => {
      // `add`: what another element has stored in the meantime is not overwritten.
      TABLES.forEach((name, index) => {
        for (const row of found[index] ?? []) transaction.objectStore(name).add(row);
      });
      return completed(transaction);
    });
}

/**
 * Scripts of the site and tools of the browser can change what is stored. Impossible values are replaced, so that
 * nothing is deleted because of them.
 */
export function soundSummary(summary: Summary): Summary {
  const { title, updatedAt, size } = summary;
  return {
    ...summary,
    title: asString(title),
    updatedAt: isWithin(updatedAt, MAX_TIME) ? updatedAt : Date.now(),
    size: isWithin(size, MAX_SIZE) ? size : 0,
  };
}

const isWithin = (value: unknown, max: number) => typeof value === "number" && value >= 0 && value <= max;

/** `UNREADABLE` for a row of an unknown version, and for a damaged one. */
export function fromRow(stored: Row): StoredConversation | typeof UNREADABLE {
  const row = withKnownBlocks(stored);
  if (row.version !== VERSION || !isReadable(row)) return UNREADABLE;
  const { version: _, ...rest } = row;
  // An older version could not keep signed states with files.
  const lost = new Set<string | undefined>(row.root === null ? [undefined] : []);
  for (const { id, parent } of row.tree) {
    const stored = row.states[id];
    if (stored === null || (lost.has(parent) && (stored === undefined || !!stored.from))) lost.add(id);
  }
  if (lost.size === 0) return rest;
  // The agent knows nothing of a branch whose state could not be stored: it continues as a new conversation.
  const parents = new Set<string | undefined>();
  // Messages of the page do not continue a branch: they have no state.
  for (const { role, id, parent } of row.tree.toReversed()) if (role !== "page" || parents.has(id)) parents.add(parent);
  const ends = row.tree.filter(({ id, role }) => role === "assistant" && lost.has(id) && !parents.has(id));
  return {
    ...rest,
    tree: row.tree.map((message) => (ends.includes(message) ? { ...message, forgotten: true } : message)),
    states: { ...row.states, ...Object.fromEntries(ends.map(({ id }) => [id, { rest: {} }])) },
  };
}

/** `undefined` if it cannot be read. */
export function readRow(row: Row): ReadRow | undefined {
  const conversation = fromRow(row);
  if (conversation === UNREADABLE) return undefined;
  return { conversation, withSent: (before, files) => withSent(conversationOf(conversation), before, files) };
}

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === "string";
const isFlag: Check = (value) => typeof value === "boolean";
const isNumber: Check = (value) => Number.isFinite(value);
const isTime: Check = (value) => typeof value === "number" && Math.abs(value) <= MAX_TIME;
const isNull: Check = (value) => value === null;
const isAbsent: Check = (value) => value === undefined;

const either =
  (...checks: Check[]): Check =>
  (value) =>
    checks.some((check) => check(value));
const maybe = (check: Check): Check => either(isAbsent, check);
const oneOf =
  (...values: unknown[]): Check =>
  (value) =>
    values.includes(value);
/** A list may have holes, which `every` passes over. */
const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && [...value].every(check);
const has =
  (fields: Readonly<Record<string, Check>>): Check =>
  (value) =>
    isRecord(value) && Object.entries(fields).every(([name, check]) => check(value[name]));
const valuesAre =
  (check: Check): Check =>
  (value) =>
    isRecord(value) && Object.values(value).every(check);

/** Messages and states never change: they are checked until they are found sound. */
function once(check: Check): Check {
  const sound = new WeakSet();
  return (value) => {
    if (!isRecord(value)) return check(value);
    const isSound = sound.has(value) || check(value);
    if (isSound) sound.add(value);
    return isSound;
  };
}

const isMediaType: Check = (value) => Object.hasOwn(MEDIA_TYPES, `${value}`);
const FILE = has({
  name: isText,
  mediaType: either(isMediaType, (value) => Object.hasOwn(TEXT_TYPES, `${value}`)),
  size: maybe(isNumber),
  width: maybe(isNumber),
  height: maybe(isNumber),
  picture: maybe((value) => value instanceof Blob),
});

const PART = either(
  has({ type: oneOf("text"), text: isText }),
  has({ type: oneOf("file"), file: has({ filename: isText }) }),
  has({ type: oneOf("image_url") }),
  has({ type: oneOf("omitted"), omitted: has({ sha256: isText, mime_type: isMediaType, bytes: isNumber }) }),
);
const DECISION = { approved: isFlag, reason: maybe(isText), arguments: maybe(isText) };

const APPROVAL = has({
  ...{ text: isText, expires_at: isText, danger: maybe(isFlag), editable: maybe(isFlag) },
  schema: maybe(isRecord),
});

/** Every field of a block except its type. */
type Fields<It> = { readonly [Name in Exclude<keyof It, "type">]-?: Check };

const SOURCES = { sources: maybe(listOf(isRecord)) };

/** The fields of each kind of block. */
const BLOCKS: { readonly [Type in Block["type"]]: Fields<Extract<Block, { type: Type }>> } = {
  text: { ...SOURCES, text: isText, continues: maybe(isFlag) },
  thinking: { ...SOURCES, text: isText, startedAt: isTime, endedAt: maybe(isTime) },
  tool: {
    ...SOURCES,
    callId: isText,
    tool: isText,
    title: maybe(either(isText, valuesAre(isText))),
    arguments: isText,
    status: oneOf("running", "completed", "failed", "stopped", "waiting"),
    startedAt: maybe(isTime),
    output: maybe(isText),
    images: maybe(listOf(PART)),
    imagesOmitted: maybe(isNumber),
    durationMs: maybe(isNumber),
    approval: maybe(APPROVAL),
    askedAt: maybe(isTime),
    decision: maybe(has(DECISION)),
    decidedAt: maybe(isTime),
    refused: maybe(isText),
    problems: maybe(Array.isArray),
    progress: maybe(isText),
    steps: maybe(listOf((step) => CALL(step))),
  },
};

const CALL = has({ type: oneOf("tool"), ...BLOCKS.tool });

const BLOCK = either(...Object.entries(BLOCKS).map(([type, fields]) => has({ type: oneOf(type), ...fields })));

const isUnknown: Check = (block) => isRecord(block) && isText(block.type) && !Object.hasOwn(BLOCKS, `${block.type}`);

/** A newer version of the chat may have kinds of blocks that this one does not know: they are left out. */
function withKnownBlocks(row: Row): Row {
  if (!Array.isArray(row.tree)) return row;
  const known = (blocks: readonly Block[]) => blocks.filter((block) => !isUnknown(block));
  const tree = row.tree.map((message) => {
    if (!isRecord(message) || !Array.isArray(message.blocks) || !message.blocks.some(isUnknown)) return message;
    const { blocks, kept }: AssistantMessage = message as never;
    return { ...message, blocks: known(blocks), kept: kept && known(blocks.slice(0, kept)).length };
  });
  return { ...row, tree };
}

const FAILURE = has({
  code: isText,
  retryable: isFlag,
  detail: maybe(isText),
  reference: maybe(isText),
  at: maybe(isTime),
  retryAt: maybe(isTime),
});

const PLACE = { id: (value: unknown) => /^m\d+$/.test(`${value}`), parent: maybe(isText) };

const MESSAGE = either(
  has({
    ...PLACE,
    role: oneOf("user"),
    text: isText,
    files: listOf(FILE),
    at: maybe(isTime),
    queued: maybe(listOf(isText)),
  }),
  has({
    ...PLACE,
    role: oneOf("assistant"),
    blocks: listOf(BLOCK),
    status: oneOf("streaming", "done", "failed"),
    finishReason: maybe(isText),
    at: maybe(isTime),
    suggestions: maybe(listOf(isText)),
    failure: maybe(FAILURE),
    forgotten: maybe(isFlag),
    feedback: maybe(has({ rating: oneOf("up", "down"), reason: maybe(isText), comment: maybe(isText) })),
    run: maybe(isText),
    goesOn: maybe(has({ approvals: maybe(listOf(has({ ...DECISION, id: isText }))), continue: maybe(isFlag) })),
    kept: maybe(isNumber),
    from: maybe(isNumber),
  }),
  has({ ...PLACE, role: oneOf("page"), text: isText, name: maybe(isText), at: isTime }),
);

/** The server's part: only what is read here is checked. */
const HISTORY = listOf(has({ role: isText, content: either(isAbsent, isNull, isText, listOf(PART)) }));
const OPEN = maybe(has({ messages: HISTORY, sealed: maybe(isText) }));
const STATE = has({ rest: has({ open: OPEN }), from: maybe(isNumber), added: maybe(HISTORY) });

const DATA = {
  name: maybe(isText),
  title: maybe(isText),
  count: maybe(isNumber),
  seen: maybe(valuesAre(isNumber)),
  isUnread: maybe(isFlag),
  queued: maybe(listOf(has({ id: isText, text: isText, files: listOf(has({ name: isText })), isHeld: maybe(isFlag) }))),
  run: maybe(has({ run: isText, after: isNumber, answer: maybe(isText), isStopped: maybe(isFlag) })),
  tree: listOf(once(MESSAGE)),
  states: valuesAre(once(either(isNull, STATE))),
  root: either(isNull, once(has({ conversation_history: maybe(HISTORY), open: OPEN }))),
};
const CONVERSATION = has(DATA);
const ROW = has({ ...DATA, id: isText, agent: isText, user: maybe(isText), updatedAt: isTime, clock: isNumber });

const isSound = (conversation: ConversationData): boolean => CONVERSATION(conversation) && isTree(conversation);

const isReadable = (row: Row): boolean => ROW(row) && isTree(row);

/** Whether each message follows its parent, so that there are no cycles. */
function isTree({ tree, head }: ConversationData): boolean {
  const known = new Set<string | undefined>([undefined]);
  return tree.every(({ id, parent }) => known.has(parent) && known.add(id)) && known.has(head);
}
