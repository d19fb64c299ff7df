import { LitElement, type PropertyDeclarations, type ReactiveElement } from "lit";
import type { ChatContext } from "./context.ts";

/**
 * A part of `<agent-chat>` that is redrawn on its own. It renders into itself, so that the element has one shadow root:
 * its style sheets and the page's `::part` rules reach everything.
 */
export abstract class ChatPart extends LitElement {
  static override properties: PropertyDeclarations = { context: { attribute: false } };
  context!: ChatContext;

  protected override createRenderRoot(): this {
    return this;
  }

  /** Resolves when the parts inside have been drawn, too. */
  protected override async getUpdateComplete(): Promise<boolean> {
    const isComplete = await super.getUpdateComplete();
    await partsComplete(this);
    return isComplete;
  }
}

const PARTS = ["composer", "feedback", "key-prompt", "markdown", "message", "step", "steps"]
  .map((name) => `agent-chat-${name}`)
  .join();

/** Resolves when the parts inside an element or a root have been drawn, and theirs. */
export async function partsComplete(root: ParentNode): Promise<void> {
  for (;;) {
    // An element whose code is still to be loaded has nothing to wait for, and most parts are drawn already.
    const parts = root.querySelectorAll<Element & Partial<ReactiveElement>>(PARTS);
    const pending = [...parts].filter(({ isUpdatePending }) => isUpdatePending);
    if (pending.length === 0) return;
    await Promise.all(pending.map(({ updateComplete }) => updateComplete));
  }
}
