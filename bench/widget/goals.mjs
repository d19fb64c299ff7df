/** Judges what was measured. */

export const reached = (isReached) => (isReached ? "reached" : "NOT reached");

/** Rows of a table: the goals of an answer that streams, of its costs and of what a reader saw. */
export function frameGoals({ start, end, loop, longest }, { frames, raw, kept }) {
  const part = raw / frames;
  return [
    ["what", "measured", "goal", ""],
    ["mean frame at the end, in a loop", `${loop.toFixed(2)} ms`, "<= 1 ms", reached(loop <= 1)],
    ["one on the screen, against the start", `${(end / start).toFixed(2)} x`, "<= 1.5 x", reached(end <= 1.5 * start)],
    ["longest frame", `${longest.toFixed(1)} ms`, "<= 50 ms", reached(longest <= 50)],
    ["frames that show raw marks", `${(100 * part).toFixed(2)} %`, "< 1 %", reached(part < 0.01)],
    ["a selection in the text", kept ? "kept" : "lost", "kept", reached(kept)],
  ];
}
