/** Resolves at the next animation frame, or within a second in a hidden tab, which gets no frames. */
export function nextFrame(): Promise<void> {
  return new Promise((resolve) => {
    const frame = requestAnimationFrame(() => done());
    const timer = setTimeout(() => done(), 1_000);
    const done = () => {
      cancelAnimationFrame(frame);
      clearTimeout(timer);
      resolve();
    };
  });
}
