import type { StepModes } from "./step-modes.ts";

/** What is open and what was just copied, as far as a view that folds or copies needs it. */
export interface Disclosure {
  /** What the page wants to be open at first. */
  readonly modes: StepModes;
  /** The person's own choice always wins over the default. */
  isOpen(id: string, byDefault: boolean): boolean;
  /** Open while something goes on, and a moment longer. */
  isOpenWhile(id: string, live: boolean): boolean;
  /** Resolves when it is drawn. */
  toggle(id: string, wasOpen: boolean, group?: string): Promise<unknown>;
  isCopied(id: string): boolean;
  copy(button: HTMLElement, id: string, text: string): Promise<void>;
}
