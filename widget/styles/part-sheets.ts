import { sheetOf } from "./adopt.ts";
import styles from "./parts.css";

const shared = sheetOf(styles);

/** The style sheets of a part that is loaded later: the shared one of such parts, and its own. */
export const partSheets = (css: string): readonly CSSStyleSheet[] => [shared, sheetOf(css)];
