/** How a conversation is printed: loaded when there is time. */

import { sheetOf } from "../styles/adopt.ts";
import styles from "../styles/print.css";

export const printSheet = sheetOf(styles);
