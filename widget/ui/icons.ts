/**
 * Icons on a grid of 24 by 24. They are decorative, since their control has the name. Rare icons are in the files that
 * use them.
 */

import { html, type TemplateResult } from "lit";
import { COPIED, COPY } from "../clipboard/copying.ts";

/** A line in the text colour, or with the class `solid` a filled shape. */
export const icon = (path: string, className = "icon"): TemplateResult => html`
  <svg class=${className} viewBox="0 0 24 24" aria-hidden="true"><path d=${path}></path></svg>
`;

const check = icon(COPIED);

export const icons = {
  send: icon("M12 19V5m-6.5 6.5L12 5l6.5 6.5"),
  stop: icon("M8.5 6.5h7a2 2 0 0 1 2 2v7a2 2 0 0 1-2 2h-7a2 2 0 0 1-2-2v-7a2 2 0 0 1 2-2z", "icon solid"),
  plus: icon("M12 5v14M5 12h14"),
  close: icon("M6.5 6.5l11 11m0-11l-11 11"),
  check,
  alert: icon("M12 8v5m0 3.2v.1M12 3.5a8.5 8.5 0 1 1 0 17a8.5 8.5 0 0 1 0-17z"),
  previous: icon("M14.5 6.5L9 12l5.5 5.5"),
  next: icon("M9.5 6.5L15 12l-5.5 5.5"),
  down: icon("M12 5v14m6.5-6.5L12 19l-6.5-6.5"),
  sun: icon(
    "M12 8a4 4 0 1 1 0 8a4 4 0 0 1 0-8zM12 2.5v2m0 15v2M2.5 12h2m15 0h2M5.3 5.3l1.4 1.4m10.6 10.6l1.4 1.4m0-13.4l-1.4 1.4M6.7 17.3l-1.4 1.4",
  ),
  moon: icon("M20 14.2A8.3 8.3 0 0 1 9.8 4a8.3 8.3 0 1 0 10.2 10.2z"),
  screen: icon(
    "M5.5 5h13A1.5 1.5 0 0 1 20 6.5v8a1.5 1.5 0 0 1-1.5 1.5h-13A1.5 1.5 0 0 1 4 14.5v-8A1.5 1.5 0 0 1 5.5 5zM12 16v4m-3.5 0h7",
  ),
  list: icon("M4.2 9A8.3 8.3 0 1 1 4 14.2M4 4.5V9h4.5M12 7.5V12l3 2"),
  compose: icon(
    "M11.5 4.5H7A2.5 2.5 0 0 0 4.5 7v10A2.5 2.5 0 0 0 7 19.5h10a2.5 2.5 0 0 0 2.5-2.5v-4.5M17.8 4.2a1.4 1.4 0 0 1 2 2L12.5 13.5l-3 1l1-3z",
  ),
  edit: icon("M5 19l1-4L16 5l3 3L9 18z"),
  key: icon("M15.5 4a4.5 4.5 0 1 1 0 9a4.5 4.5 0 0 1 0-9zM12.3 11.7L4.5 19.5m4.2-4.2l2.3 2.3m-5-.1l1.5 1.5"),
  /** The second icon replaces the first on a button that has copied. */
  copy: html`
    ${icon(COPY)} ${check}
  `,
  retry: icon("M19.5 4.5v5h-5M19 9.5A7.7 7.7 0 1 0 19.7 13"),
  /** The agent's mark. */
  spark: icon(
    "M12 2.5c.7 5.3 3.7 8.5 9.5 9.5c-5.8 1-8.8 4.2-9.5 9.5c-.7-5.3-3.7-8.5-9.5-9.5c5.8-1 8.8-4.2 9.5-9.5z",
    "icon solid",
  ),
  spinner: html`<svg class="icon spinner" viewBox="0 0 24 24" aria-hidden="true">
    <circle class="track" cx="12" cy="12" r="8.5"></circle>
    <path d="M12 3.5a8.5 8.5 0 0 1 8.5 8.5"></path>
  </svg>`,
};
