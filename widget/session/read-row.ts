/**
 * Makes conversations of what is stored. Loaded with the first that is read. Scripts of the site, tools of the browser and
 * other versions of the chat can have changed what is stored: all of it is checked before it is shown.
 */

import { MEDIA_TYPES } from "../../server/protocol/attachments.ts";
import { asString, isRecord } from "../../server/protocol/json.ts";
import { completed, PENDING, partsOf, ROWS, SUMMARIES, settled, TABLES, type Transact } from "./idb.ts";
import { expecting, rangeOf, read as readFiles } from "./kept-files.ts";
import { UNREADABLE } from "./lease.ts";
import type { Block } from "./messages.ts";
import {
  type AnswerRow,
  type Found,
  pendingOf,
  type Queue,
  type Row,
  type StoredConversation,
  type Summary,
} from "./row.ts";

// What else the store needs only where something is kept already.
export { deleteFrom, rowsOf } from "./older-rows.ts";
export { shrink } from "./shrink.ts";

/** The last moment of which there is a date. */
const MAX_TIME = 8.64e15;

/** So many characters are kept of all conversations together. */
export const MAX_SIZE = 60_000_000;

/** What makes rows of each version that can be read those of this one. */
const MIGRATIONS: ReadonlyMap<unknown, (row: Row) => Row> = new Map([[5, (row) => row]]);

export async function read(transact: Transact, id: string): Promise<Found> {
  const [[row, answer], summary, queue, files] = await transact("readonly", TABLES, (transaction) =>
    Promise.all([
      settled<[Row?, AnswerRow?]>(transaction.objectStore(ROWS).getAll(partsOf(id)) as IDBRequest),
      settled<Summary | undefined>(transaction.objectStore(SUMMARIES).get(id)),
      settled<Queue | undefined>(transaction.objectStore(PENDING).get(id)),
      settled(transaction.objectStore(PENDING).getAllKeys(rangeOf(id))),
    ]),
  );
  if (!row) return summary && UNREADABLE;
  // What may be written is decided by the summary.
  const found = fromRow({ ...withAnswer(row, answer), revision: summary?.revision ?? 0, pending: pendingOf(queue) });
  if (found === UNREADABLE || files.length === 0) return found;
  const expected = expecting(found, files);
  return { ...expected, withFiles: () => readFiles(transact, expected) };
}

/** Resolves with what puts all of it there again, as it is. */
export async function copy(transact: Transact, id: string): Promise<() => Promise<void>> {
  const found = await transact("readonly", TABLES, (transaction) =>
    Promise.all(TABLES.map((name) => settled<object[]>(transaction.objectStore(name).getAll(partsOf(id))))),
  );
  return () =>
    transact("readwrite", TABLES, (transaction) => {
      // What another element has stored there meanwhile stays.
      TABLES.forEach((name, index) => {
        for (const row of found[index] ?? []) transaction.objectStore(name).add(row);
      });
      return completed(transaction);
    });
}

/**
 * Scripts of the site and tools of the browser can change what is stored. What cannot be is left out: nothing is deleted
 * because of it.
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

/** `UNREADABLE` for a row of a version that is not known, and for a damaged one. */
export function fromRow(stored: Row): StoredConversation | typeof UNREADABLE {
  const row = MIGRATIONS.get(stored.version)?.(stored);
  if (!row || !isSound(row)) return UNREADABLE;
  const { version: _, ...rest } = row;
  // An older version could not keep signed states with files.
  const lost = new Set<string | undefined>(row.root === null ? [undefined] : []);
  for (const { id, parent } of row.tree) {
    const stored = row.states[id];
    if (stored === null || (lost.has(parent) && (stored === undefined || !!stored.from))) lost.add(id);
  }
  if (lost.size === 0) return rest;
  // The agent knows nothing of a branch whose state could not be stored: it goes on as a new conversation.
  const parents = new Set<string | undefined>();
  // What the page has added goes on with no state.
  for (const { role, id, parent } of row.tree.toReversed()) if (role !== "page" || parents.has(id)) parents.add(parent);
  const ends = row.tree.filter(({ id, role }) => role === "assistant" && lost.has(id) && !parents.has(id));
  return {
    ...rest,
    tree: row.tree.map((message) => (ends.includes(message) ? { ...message, forgotten: true } : message)),
    states: { ...row.states, ...Object.fromEntries(ends.map(({ id }) => [id, { rest: {} }])) },
  };
}

/** The row with an answer that was written since. */
export function withAnswer(row: Row, stored: AnswerRow | undefined): Row {
  if (!stored || stored.revision <= row.revision || !Array.isArray(row.tree)) return row;
  const { id: _, answer, ...rest } = stored;
  const whole = { ...row, ...rest, tree: row.tree.map((it) => (it?.id === answer?.id ? answer : it)) };
  return isSound(whole) ? whole : row;
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

const isMediaType: Check = (value) => Object.hasOwn(MEDIA_TYPES, `${value}`);
const FILE = has({
  name: isText,
  mediaType: isMediaType,
  size: maybe(isNumber),
  width: maybe(isNumber),
  height: maybe(isNumber),
  picture: isAbsent,
});

const DECISION = { approved: isFlag, reason: maybe(isText), arguments: maybe(isText) };

const APPROVAL = has({ text: isText, expires_at: isText, danger: maybe(isFlag), editable: maybe(isFlag) });

/** Every field of a block, but its type. */
type Fields<It> = { readonly [Name in Exclude<keyof It, "type">]-?: Check };

/** What each kind of block is made of. */
const BLOCKS: { readonly [Type in Block["type"]]: Fields<Extract<Block, { type: Type }>> } = {
  text: { text: isText, continues: maybe(isFlag) },
  thinking: { text: isText, startedAt: isTime, endedAt: maybe(isTime) },
  tool: {
    callId: isText,
    tool: isText,
    title: maybe(either(isText, valuesAre(isText))),
    arguments: isText,
    status: oneOf("running", "completed", "failed", "stopped", "waiting"),
    startedAt: maybe(isTime),
    output: maybe(isText),
    durationMs: maybe(isNumber),
    approval: maybe(APPROVAL),
    askedAt: maybe(isTime),
    decision: maybe(has(DECISION)),
    decidedAt: maybe(isTime),
    refused: maybe(isText),
  },
};

const BLOCK = either(...Object.entries(BLOCKS).map(([type, fields]) => has({ type: oneOf(type), ...fields })));

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
    pending: maybe(listOf(isText)),
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
  }),
  has({ ...PLACE, role: oneOf("page"), text: isText, name: maybe(isText), at: isTime }),
);

const PART = either(
  has({ type: oneOf("text"), text: isText }),
  has({ type: oneOf("file"), file: has({ filename: isText }) }),
  has({ type: oneOf("image_url") }),
  has({ type: oneOf("omitted"), omitted: has({ sha256: isText, mime_type: isMediaType, bytes: isNumber }) }),
);
/** What the server has made, no more of it than is read here. */
const HISTORY = listOf(has({ role: isText, content: either(isAbsent, isNull, isText, listOf(PART)) }));
const OPEN = maybe(has({ messages: HISTORY, sealed: maybe(isText) }));
const STATE = has({ rest: has({ open: OPEN }), from: maybe(isNumber), added: maybe(HISTORY) });

const ROW = has({
  id: isText,
  agent: isText,
  user: maybe(isText),
  name: maybe(isText),
  title: maybe(isText),
  updatedAt: isTime,
  revision: isNumber,
  marks: maybe(isNumber),
  run: maybe(has({ run: isText, after: isNumber })),
  tree: listOf(MESSAGE),
  states: valuesAre(either(isNull, STATE)),
  root: either(isNull, has({ conversation_history: maybe(HISTORY), open: OPEN })),
});

function isSound(row: Row): boolean {
  // Each message stands behind its parent: nothing goes round in circles.
  const known = new Set<string | undefined>([undefined]);
  return ROW(row) && row.tree.every(({ id, parent }) => known.has(parent) && known.add(id)) && known.has(row.head);
}
