/** Compares responses shown in a document with real ones. */

import assert from "node:assert/strict";

/**
 * Asserts that a shown value equals the real one. "…" at the end of a text, or as the last element of an array, stands
 * for the rest; durations are not compared.
 */
export function assertShown(real: unknown, shown: unknown, at = ""): void {
  if (typeof shown === "string" && shown.endsWith("…")) {
    assert.equal(`${String(real).slice(0, shown.length - 1)}…`, shown, at);
  } else if (Array.isArray(shown) && Array.isArray(real)) {
    const open = shown.at(-1) === "…";
    const items = open ? shown.slice(0, -1) : shown;
    assert.ok(open ? real.length >= items.length : real.length === items.length, `${at} length`);
    for (const [index, item] of items.entries()) assertShown(real[index], item, `${at}/${index}`);
  } else if (typeof shown === "object" && shown !== null && typeof real === "object" && real) {
    assert.deepEqual(Object.keys(real).sort(), Object.keys(shown).sort(), `${at} fields`);
    const values = new Map(Object.entries(real));
    for (const [name, value] of Object.entries(shown)) {
      if (name === "duration_ms") assert.equal(typeof values.get(name), "number");
      else assertShown(values.get(name), value, `${at}/${name}`);
    }
  } else {
    assert.equal(real, shown, at);
  }
}

/** Asserts that the events occur in this order, directly one after another where there is no "…" between them. */
export function assertShownEvents(real: readonly unknown[], shown: readonly (string | unknown)[]): void {
  let next = 0;
  let skips = false;
  for (const event of shown) {
    if (event === "…") {
      skips = true;
      continue;
    }
    if (skips) {
      const type = typeOf(event);
      while (next < real.length && typeOf(real[next]) !== type) next++;
    }
    assertShown(real[next++], event, `event ${next}`);
    skips = false;
  }
  if (!skips) assert.equal(real.length, next, "events after the last one that is shown");
}

/** The event's `type`, or `undefined` if the value is not an event. */
export function typeOf(event: unknown): unknown {
  return typeof event === "object" && event !== null && "type" in event ? event.type : undefined;
}

/** The events of a real stream, or of one in a document, where "…" may stand between events. */
export function eventsOf(stream: string): unknown[] {
  return stream
    .split("\n")
    .filter((line) => line.startsWith("data: ") || line === "…")
    .map((line) => (line === "…" ? line : JSON.parse(line.slice(6))));
}
