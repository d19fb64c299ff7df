/** Files of messages. A chunk: it is loaded with the first file that is dragged in or attached, or that an earlier message has. */

export { AttachmentDraft } from "../attachment-draft.ts";
export { fileStyles as styles } from "../styles/files.styles.ts";
export { fileTexts as texts } from "../texts/files.ts";
export { filesView, refusalsView, sentFilesView } from "../views/attachment-list.ts";
export { dropView } from "../views/drop.ts";
