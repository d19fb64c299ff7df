/**
 * What is done with messages afterwards: change one, copy an answer as it looks. A chunk: it is loaded when the first answer is
 * over, so that it is there when it is wanted.
 */

export { MessageEditor } from "../message-editor.ts";
export { copyDrawn } from "../rich-text.ts";
export { editingStyles as styles } from "../styles/editing.styles.ts";
export { editingTexts as texts } from "../texts/editing.ts";
