/** Keys by which people move in the chat. */

/** Tab always passes through the controls of so many exchanges at the end of the conversation. */
const RECENT = 2;

const CONTROLS = 'a[href], button:enabled, input:enabled, textarea, summary, [tabindex="0"]';

/**
 * Where a key moves the focus to, if not to where the browser would. F6 goes to and fro between conversation and text
 * field, Escape goes to the text field, and Tab passes through what is in view and the last exchanges: a conversation
 * has hundreds of controls.
 */
export function focusTarget(event: KeyboardEvent, scroller: HTMLElement): HTMLElement | "composer" | undefined {
  const { key, target, shiftKey } = event;
  const isInside = scroller.contains(target as Node);
  if (event.ctrlKey || event.metaKey || event.altKey) return undefined;
  if (key === "F6") return isInside ? "composer" : scroller;
  // Not for a person who has clicked into the text and wants to close a panel.
  if (key === "Escape") return isInside && (target as Element).matches(":focus-visible") ? "composer" : undefined;
  if (key !== "Tab") return undefined;
  const exchanges = [...scroller.querySelectorAll<HTMLElement>(".exchange")];
  if (!shiftKey) return target === scroller ? firstInView(exchanges, scroller) : undefined;
  const exchange = exchanges.slice(0, 1 - RECENT).find((it) => it.contains(target as Node));
  return exchange && controlsOf(exchange)[0] === target ? scroller : undefined;
}

/** The first control that is not above the view, or in the last exchanges. */
function firstInView(exchanges: readonly HTMLElement[], scroller: HTMLElement): HTMLElement | undefined {
  const { top } = scroller.getBoundingClientRect();
  const recent = exchanges.slice(-RECENT);
  const isReachable = (it: HTMLElement) => it.getBoundingClientRect().bottom > top;
  for (const exchange of exchanges) {
    const isRecent = recent.includes(exchange);
    if (!isRecent && !isReachable(exchange)) continue;
    const control = controlsOf(exchange).find((it) => isRecent || isReachable(it));
    if (control) return control;
  }
  return undefined;
}

function controlsOf(exchange: HTMLElement): readonly HTMLElement[] {
  return [...exchange.querySelectorAll<HTMLElement>(CONTROLS)].filter((it) =>
    it.checkVisibility({ visibilityProperty: true }),
  );
}
