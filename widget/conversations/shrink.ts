/** Makes a conversation small enough to be stored. Loaded with `read-row.ts`. */

import { branchOf, type ConversationData, stateAt } from "./conversation.ts";
import type { Message } from "./messages.ts";
import { charsOf, sizeOf } from "./row.ts";

/**
 * Leaves out other branches, the oldest ends first, and then the beginning of the shown branch, until the messages have
 * at most `maxChars` characters together. The state of the shown branch stays.
 */
export function shrink<Data extends ConversationData>(data: Data, maxChars: number): Data {
  const shown = new Set(branchOf(data.tree, data.head).map(({ id }) => id));
  let tree = data.tree;
  let chars = charsOf(tree);
  while (chars > maxChars && tree.length > shown.size) {
    const parents = new Set(tree.map(({ parent }) => parent));
    const oldest = tree.find(({ id }) => !parents.has(id) && !shown.has(id));
    chars -= oldest ? sizeOf(oldest) : 0;
    tree = tree.filter((message) => message !== oldest);
  }
  let first = 0;
  for (; chars > maxChars && first < tree.length; first += 1) chars -= sizeOf(tree[first] as Message);
  const root = first === 0 ? data.root : (stateAt(data, tree[first - 1]?.id) ?? null);
  const kept = tree.slice(first).map((message, index) => (index === 0 ? { ...message, parent: undefined } : message));
  const states = Object.fromEntries(
    kept.flatMap(({ id }) => (data.states[id] === undefined ? [] : [[id, data.states[id]]])),
  );
  return { ...data, root, states, isCut: data.isCut || first > 0, tree: kept };
}
