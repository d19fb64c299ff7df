/** Where Tab moves the focus to in a conversation, which has hundreds of controls. */

/** Number of exchanges at the end of the conversation whose controls Tab always visits. */
const RECENT = 2;

const CONTROLS = 'a[href], button:enabled, input:enabled, textarea, summary, [tabindex="0"]';

/** Tab visits the controls in view and in the last exchanges. `undefined`: the browser moves the focus. */
export function tabStop({ target, shiftKey }: KeyboardEvent, scroller: HTMLElement): HTMLElement | undefined {
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
