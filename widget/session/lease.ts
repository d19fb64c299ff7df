/** What the keeper knows of a conversation in the store. */

/** What is read in the place of a conversation that another version has written, or that is damaged. It stays stored. */
export const UNREADABLE = "unreadable";

/** What is shown and not in the store: it is stored anew. */
export const UNKNOWN = { revision: 0, savedAt: 0 };

/** How long an element may go on with a conversation alone, from each save on. */
export const LEASE_MS = 5_000;

/** Whether a lease lasts. One that ends later than one of now would was made before the clock was set back. */
export function isAhead(until: number): boolean {
  const left = until - Date.now();
  return left >= 0 && left <= LEASE_MS;
}

/** Whether an element goes on with it. */
export const isLeased = ({ until }: { readonly until: number }): boolean => isAhead(until);
