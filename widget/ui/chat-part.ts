import { LitElement, type PropertyDeclarations, type ReactiveElement } from "lit";
import type { Lazy } from "../loading/lazy.ts";
import { adoptSheets } from "../styles/adopt.ts";
import type { ChatContext } from "./context.ts";

/**
 * A part of `<agent-chat>` that is redrawn on its own. It renders into itself, so that the element has one shadow root:
 * its style sheets and the page's `::part` rules reach everything.
 */
export abstract class ChatPart extends LitElement {
  static override properties: PropertyDeclarations = { context: { attribute: false } };
  /** The style sheets of a part that is loaded later. Its root adopts them with the first such element. */
  static readonly sheets: readonly CSSStyleSheet[] = [];
  context!: ChatContext;

  override connectedCallback(): void {
    super.connectedCallback();
    adoptSheets(this, (this.constructor as typeof ChatPart).sheets);
  }

  protected override createRenderRoot(): this {
    return this;
  }

  /** Resolves once the parts inside have been drawn as well. */
  protected override async getUpdateComplete(): Promise<boolean> {
    const isComplete = await super.getUpdateComplete();
    await partsComplete(this);
    return isComplete;
  }
}

/** A tag, and the module with its class. The class is the first export, as capital letters sort first. */
export interface LazyElement<Module = object> {
  readonly tag: string;
  readonly module: Lazy<Module>;
}

/** The tags of all parts that are defined. */
const tags = new Set<string>();

export function definePart(tag: string, element: CustomElementConstructor): void {
  tags.add(tag);
  if (!customElements.get(tag)) customElements.define(tag, element);
}

/**
 * Resolves when the parts inside an element or root that need drawing have been drawn, nested ones included. Does not
 * wait for parts added later: a long conversation has many.
 */
export async function partsComplete(root: ParentNode): Promise<void> {
  // Elements whose code is not loaded have nothing to wait for, and most parts are already drawn.
  const parts = [...root.querySelectorAll<Element & Partial<ReactiveElement>>([...tags].join())];
  for (let pending = parts; pending.length > 0; ) {
    pending = pending.filter(({ isUpdatePending }) => isUpdatePending);
    await Promise.all(pending.map(({ updateComplete }) => updateComplete));
  }
}
