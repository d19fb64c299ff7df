/**
 * Notes at each part of an answer whether the browser skips it as too far from view (`content-visibility: auto`): who comes later,
 * as chunks do, cannot ask for it without having the page laid out.
 */

export interface SkippablePart extends Element {
  isSkipped?: boolean;
}

export interface SkipChange extends Event {
  readonly target: SkippablePart;
  readonly skipped: boolean;
}

/** From now on what is skipped in this root, and is no longer, is noted. */
export function noteSkips(root: Node): void {
  const note = (event: Event) => {
    const { target, skipped } = event as SkipChange;
    target.isSkipped = skipped;
  };
  // In Firefox the event does not bubble.
  root.addEventListener("contentvisibilityautostatechange", note, true);
}
