/** Icons of what comes late: steps, and the form that asks for a key. */

import { html } from "lit";
import { icon } from "./icons.ts";

export const chevron = icon("M9.5 6.5L15 12l-5.5 5.5");
export const cross = icon("M7 7l10 10M17 7L7 17");
export const dash = icon("M7 12h10");
export const bulb = icon(
  "M9.5 17.5h5m-4 3h3M12 3.5a6 6 0 0 0-3.7 10.7c.8.7 1.2 1.5 1.2 2.3v1h5v-1c0-.8.4-1.6 1.2-2.3A6 6 0 0 0 12 3.5z",
);
export const spinner = html`<svg class="icon spinner" viewBox="0 0 24 24" aria-hidden="true">
    <circle class="track" cx="12" cy="12" r="8.5"></circle>
    <path d="M12 3.5a8.5 8.5 0 0 1 8.5 8.5"></path>
  </svg>`;
