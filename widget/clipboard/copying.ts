/** What a copy button needs before it is pressed. */

import { lazy } from "../loading/lazy.ts";

/** The icons of buttons that copy, and that have copied, on a grid of 24 by 24. */
export const COPY =
  "M11 9h7a2 2 0 0 1 2 2v7a2 2 0 0 1-2 2h-7a2 2 0 0 1-2-2v-7a2 2 0 0 1 2-2zM5.5 15A1.5 1.5 0 0 1 4 13.5V6a2 2 0 0 1 2-2h7.5A1.5 1.5 0 0 1 15 5.5";
export const COPIED = "M5 12.8l4.4 4.4L19 7.2";

/** Loaded when the page is idle: browsers let a page copy only right after a press. */
export const clipboard = lazy(() => import("./clipboard.ts"), "copyFrom");

export type Clipboard = typeof import("./clipboard.ts");
