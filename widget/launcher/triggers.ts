/** When something happens by itself: after a time, when the page was read, or when the visitor is about to leave it. */

import { warnOfValue } from "../element/properties.ts";

/** The longest time that a browser's timer takes; it would act at once on a longer one. */
const MAX_MS = 2_147_483_647;

type Watch = (act: () => void, signal: AbortSignal) => void;

/**
 * Calls `act` at the first of the triggers that a text names, or when the page comes into view after it. Returns what
 * cancels it; `undefined`, with a warning about the launcher's attribute, for any other text.
 */
export function onTrigger(
  launcher: HTMLElement,
  attribute: string,
  value: string | number,
  act: () => void,
): (() => void) | undefined {
  const watches = String(value).trim().split(/\s+/).map(watchOf);
  if (watches.includes(undefined)) {
    const expected = 'a time in milliseconds, a part of the page such as "50%", "exit", or several of them';
    warnOfValue(launcher, attribute, value, expected);
    return undefined;
  }
  const over = new AbortController();
  const once = () => {
    // In a tab that is not in view it would be neither seen nor heard.
    if (document.visibilityState === "hidden") {
      document.addEventListener("visibilitychange", once, { signal: over.signal });
      return;
    }
    over.abort();
    act();
  };
  for (const watch of watches) watch?.(once, over.signal);
  return () => over.abort();
}

function watchOf(word: string): Watch | undefined {
  if (word === "exit") return whenLeaving;
  const [, digits = "", percent = ""] = /^(\d+)(%?)$/.exec(word) ?? [];
  const number = Number(digits);
  if (digits === "" || number > (percent ? 100 : MAX_MS)) return undefined;
  return percent ? whenScrolled(number / 100) : afterTime(number);
}

function afterTime(milliseconds: number): Watch {
  return (act, signal) => {
    const timer = setTimeout(act, milliseconds);
    signal.addEventListener("abort", () => clearTimeout(timer));
  };
}

/** Looks when the page is scrolled: a short page was not read because it was opened. */
function whenScrolled(part: number): Watch {
  return (act, signal) => {
    const check = () => {
      const { scrollTop, clientHeight, scrollHeight } = document.scrollingElement ?? document.documentElement;
      // Heights are rounded, positions are not.
      if (scrollTop + clientHeight + 1 >= scrollHeight * part) act();
    };
    addEventListener("scroll", check, { signal, passive: true });
    // The page was scrolled before this file was there.
    if (scrollY > 0) check();
  };
}

/** The mouse leaves by the top, where tabs and the address are. */
const whenLeaving: Watch = (act, signal) => {
  const leave = ({ clientY }: MouseEvent) => {
    if (clientY <= 0) act();
  };
  document.documentElement.addEventListener("mouseleave", leave, { signal });
};
