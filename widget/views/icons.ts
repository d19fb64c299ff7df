/** Line icons on a 24 px grid. They are decoration: the control beside them carries the name. */

import { html, type TemplateResult } from "lit";
import { SPARK } from "./spark-path.ts";

export const icon = (path: string, className = "icon"): TemplateResult => html`
  <svg class=${className} viewBox="0 0 24 24" aria-hidden="true"><path d=${path}></path></svg>
`;

export const send = icon("M12 19V5m-6.5 6.5L12 5l6.5 6.5");
export const stop = icon("M8.5 6.5h7a2 2 0 0 1 2 2v7a2 2 0 0 1-2 2h-7a2 2 0 0 1-2-2v-7a2 2 0 0 1 2-2z", "icon solid");
export const plus = icon("M12 5v14M5 12h14");
export const close = icon("M6.5 6.5l11 11m0-11l-11 11");
export const check = icon("M5 12.8l4.4 4.4L19 7.2");
export const alert = icon("M12 8v5m0 3.2v.1M12 3.5a8.5 8.5 0 1 1 0 17a8.5 8.5 0 0 1 0-17z");
export const sun = icon(
  "M12 8a4 4 0 1 1 0 8a4 4 0 0 1 0-8zM12 2.5v2m0 15v2M2.5 12h2m15 0h2M5.3 5.3l1.4 1.4m10.6 10.6l1.4 1.4m0-13.4l-1.4 1.4M6.7 17.3l-1.4 1.4",
);
export const moon = icon("M20 14.2A8.3 8.3 0 0 1 9.8 4a8.3 8.3 0 1 0 10.2 10.2z");
export const compose = icon(
  "M11.5 4.5H7A2.5 2.5 0 0 0 4.5 7v10A2.5 2.5 0 0 0 7 19.5h10a2.5 2.5 0 0 0 2.5-2.5v-4.5M17.8 4.2a1.4 1.4 0 0 1 2 2L12.5 13.5l-3 1l1-3z",
);
export const edit = icon("M5 19l1-4L16 5l3 3L9 18z");
export const down = icon("M12 5v14m6.5-6.5L12 19l-6.5-6.5");
export const key = icon(
  "M15.5 4a4.5 4.5 0 1 1 0 9a4.5 4.5 0 0 1 0-9zM12.3 11.7L4.5 19.5m4.2-4.2l2.3 2.3m-5-.1l1.5 1.5",
);
export const copy = icon(
  "M11 9h7a2 2 0 0 1 2 2v7a2 2 0 0 1-2 2h-7a2 2 0 0 1-2-2v-7a2 2 0 0 1 2-2zM5.5 15A1.5 1.5 0 0 1 4 13.5V6a2 2 0 0 1 2-2h7.5A1.5 1.5 0 0 1 15 5.5",
);
export const retry = icon("M19.5 4.5v5h-5M19 9.5A7.7 7.7 0 1 0 19.7 13");
export const spark = icon(SPARK, "icon solid");
