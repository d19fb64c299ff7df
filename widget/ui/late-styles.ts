/** Styles that the first view does not need. Loaded when the page is idle. */

import { sheetOf } from "../styles/adopt.ts";
import composer from "../styles/composer-late.css";
import forced from "../styles/forced.css";
import hover from "../styles/hover.css";
import low from "../styles/low.css";
import print from "../styles/print.css";

export const lateSheets = [composer, hover, low, print, forced].map(sheetOf);
