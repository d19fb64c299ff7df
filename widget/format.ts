/** Sizes and times, as people read them. */

/** "20 MB", "512 B", in the binary units that the limits are given in. */
export function formatBytes(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  const [divisor, unit] = bytes >= 1024 * 1024 ? [1024 * 1024, "MB"] : [1024, "kB"];
  return `${Math.round((bytes / divisor) * 10) / 10} ${unit}`;
}

/** "340 ms", "1.2 s", "2 min 5 s". */
export function formatDuration(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}
