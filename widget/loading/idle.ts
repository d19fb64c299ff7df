/** Does something while the page has nothing else to do. Safari has no idle callbacks. */
export const whenIdle: (work: () => void) => void =
  globalThis.requestIdleCallback ?? ((work: () => void) => setTimeout(work, 100));
