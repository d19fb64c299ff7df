/** The agent's mark, as a path on a 24 px grid: filled. */
export const SPARK =
  "M12 2.5c.7 5.3 3.7 8.5 9.5 9.5c-5.8 1-8.8 4.2-9.5 9.5c-.7-5.3-3.7-8.5-9.5-9.5c5.8-1 8.8-4.2 9.5-9.5z";
