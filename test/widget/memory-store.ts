/** A store of a page's own, as one may bring to keep conversations on its server. */

import assert from "node:assert/strict";
import type { PendingChange, PendingMessage } from "../../widget/session/conversation.ts";
import { LEASE_MS, UNREADABLE } from "../../widget/session/lease.ts";
import { fromRow } from "../../widget/session/read-row.ts";
import { type Found, type Row, type StoredConversation, type Summary, summaryOf } from "../../widget/session/row.ts";
import { type ConversationStore, mayWrite, type Writer } from "../../widget/session/store.ts";

export class MemoryStore implements ConversationStore {
  readonly rows = new Map<string, StoredConversation>();
  readonly summaries = new Map<string, Summary>();
  readonly queues = new Map<string, readonly PendingMessage[]>();
  isFrozen = false;
  saves = 0;

  async list() {
    // Rows that a test has put there have no summary.
    return [...this.rows.values()].map((row) => this.summaries.get(row.id) ?? summaryOf(row, "", 0));
  }

  async load(id: string): Promise<Found> {
    const row = this.rows.get(id);
    return row && { ...row, pending: this.queues.get(id) };
  }

  async save(conversation: StoredConversation, by: Writer, isLeaving = false) {
    this.saves += 1;
    const { id, run } = conversation;
    if (this.isFrozen) return true;
    if (!isLeaving && !mayWrite(this.summaries.get(id), by)) return false;
    const { pending = [], ...row } = conversation;
    this.rows.set(id, structuredClone(row));
    if (by.revision === 0 && pending.length > 0) this.queues.set(id, pending);
    const until = run && !isLeaving ? Date.now() + LEASE_MS : 0;
    this.summaries.set(id, summaryOf(conversation, by.writer, until));
    return true;
  }

  async claim(id: string, by: Writer) {
    const known = this.summaries.get(id);
    if (!mayWrite(known, by)) return false;
    if (known) this.summaries.set(id, { ...known, writer: by.writer, until: Date.now() + LEASE_MS });
    return true;
  }

  async queue(id: string, change: PendingChange) {
    const pending = structuredClone(change(this.queues.get(id) ?? []));
    this.queues.set(id, pending);
    return pending;
  }

  async delete(id: string) {
    this.queues.delete(id);
    this.rows.delete(id);
    this.summaries.delete(id);
  }

  async copy(id: string) {
    const [queue, row, summary] = [this.queues.get(id), this.rows.get(id), this.summaries.get(id)];
    return async () => {
      if (queue) this.queues.set(id, queue);
      if (row) this.rows.set(id, row);
      if (summary) this.summaries.set(id, summary);
    };
  }
}

/** What a page load reads of a row. */
export function readBack(row: Row): StoredConversation {
  const read = fromRow(structuredClone(row));
  assert.ok(read !== UNREADABLE);
  return read;
}
