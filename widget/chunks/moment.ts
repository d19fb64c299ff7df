/** When something happens by itself: after a time, with the reading of the page, or when the visitor is about to leave it. */

/** What a page's author is told of a value that is none. */
export const MOMENT = 'a time in milliseconds, a part of the page such as "50%", "exit", or several of them';

/** The most that a browser's timer takes; it would act at once on more. */
const MAX_MS = 2_147_483_647;

type Watch = (act: () => void, signal: AbortSignal) => void;

/**
 * Calls `act` at the first of the moments that a text names, or when the page comes into view after it, and answers what cancels
 * it; `undefined` for any other text.
 */
export function atMoment(value: string | number, act: () => void): (() => void) | undefined {
  const watches = String(value).trim().split(/\s+/).map(watchOf);
  if (watches.includes(undefined)) return undefined;
  const over = new AbortController();
  const once = () => {
    // Nobody sees or hears it in another tab's shade.
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

/** Looks when the page is scrolled: one that is short has not been read because it was opened. */
function whenScrolled(part: number): Watch {
  return (act, signal) => {
    const look = () => {
      const { scrollTop, clientHeight, scrollHeight } = document.scrollingElement ?? document.documentElement;
      // Heights are rounded, places are not.
      if (scrollTop + clientHeight + 1 >= scrollHeight * part) act();
    };
    addEventListener("scroll", look, { signal, passive: true });
  };
}

/** The mouse leaves by the top, where tabs and the address are. */
const whenLeaving: Watch = (act, signal) => {
  const leave = ({ clientY }: MouseEvent) => {
    if (clientY <= 0) act();
  };
  document.documentElement.addEventListener("mouseleave", leave, { signal });
};
