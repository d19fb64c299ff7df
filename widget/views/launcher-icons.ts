/** What the launcher's button shows beside the spark: paths on a 24 px grid. */

export const CHAT = "M20.5 11.5a8 8 0 0 1-8 8H4.5l1.7-3.1a8 8 0 1 1 14.3-4.9zM9 11.5v.1m3.5-.1v.1m3.5-.1v.1";
export const QUESTION = "M9 9.3a3 3 0 1 1 4.6 2.5c-1 .6-1.6 1.2-1.6 2.4m0 3v.1M12 3a9 9 0 1 1 0 18a9 9 0 0 1 0-18z";
