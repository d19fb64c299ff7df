/** Every string that rendered Markdown shows or speaks. A host passes its own through the directive's options. */
export interface MarkdownStrings {
  /** Label of a code block without a language. */
  readonly code: string;
  readonly copy: string;
  readonly copied: string;
  readonly copyFailed: string;
  /** Stands before the host of an image that waits for a click. */
  readonly loadImage: string;
  readonly imageFailed: string;
  /** Accessible name of a table's scroll box. */
  readonly table: string;
  readonly taskDone: string;
  readonly taskOpen: string;
}

/** The English strings, used where the host gives none. */
export const markdownStrings: MarkdownStrings = {
  code: "Code",
  copy: "Copy",
  copied: "Copied",
  copyFailed: "Copying failed",
  loadImage: "Load image from",
  imageFailed: "The image could not be loaded",
  table: "Table",
  taskDone: "Completed task",
  taskOpen: "Open task",
};
