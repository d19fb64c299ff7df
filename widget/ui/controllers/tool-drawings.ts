import type { ReactiveController, ReactiveControllerHost } from "lit";
import type { AssistantMessage, ToolBlock } from "../../session/messages.ts";
import type { ToolRenderers } from "../extensions.ts";

interface ToolDrawing {
  readonly call: ToolBlock;
  /** Whether the page had a renderer for the call. */
  readonly hasRenderer: boolean;
  readonly element: HTMLElement | undefined;
  /** Hand the element on, where it is not a child of the chat itself. */
  readonly slots: HTMLSlotElement[];
}

/**
 * The page's own drawings of the tool calls of one message. They become children of the outermost of our elements, the
 * chat or its launcher, and stand in a slot where the row of their call would be: so the page's style sheets and
 * scripts reach them.
 */
export class ToolDrawings implements ReactiveController {
  readonly #host: ReactiveControllerHost & HTMLElement;
  /** By id of the call. */
  readonly #drawings = new Map<string, ToolDrawing>();

  constructor(host: ReactiveControllerHost & HTMLElement) {
    this.#host = host;
    host.addController(this);
  }

  hostConnected(): void {
    this.#host.requestUpdate();
  }

  hostUpdated(): void {
    for (const { element, slots } of this.#drawings.values()) if (element) this.#place(element, slots);
  }

  hostDisconnected(): void {
    for (const drawing of this.#drawings.values()) remove(drawing);
  }

  /** Draws the calls that are new or have changed. To be called before the message is drawn. */
  update(message: AssistantMessage, renderers: ToolRenderers): void {
    for (const call of message.blocks) {
      if (call.type !== "tool") continue;
      const known = this.#drawings.get(call.callId);
      const renderer = Object.hasOwn(renderers, call.tool) ? renderers[call.tool] : undefined;
      const hasRenderer = renderer !== undefined;
      if (known?.call === call && known.hasRenderer === hasRenderer) continue;
      const element = renderer && draw(renderer, call, `${message.id}.${call.callId}`);
      const isKept = known !== undefined && known.element === element;
      if (known && !isKept) remove(known);
      this.#drawings.set(call.callId, { call, hasRenderer, element, slots: isKept ? known.slots : [] });
    }
  }

  /** Name of the slot with the drawing of a call; `undefined` where its row is shown. */
  slotOf({ callId }: ToolBlock): string | undefined {
    return this.#drawings.get(callId)?.element?.slot;
  }

  #place(element: HTMLElement, slots: HTMLSlotElement[]): void {
    const hosts = hostsAround(this.#host);
    const outermost = hosts.pop();
    if (!outermost || element.parentNode === outermost) return;
    outermost.append(element);
    for (const host of hosts) {
      const slot = Object.assign(document.createElement("slot"), { name: element.slot, slot: element.slot });
      slots.push(slot);
      host.append(slot);
    }
  }
}

/** The chat around a part, and the launcher around that chat: their shadow roots are ours, all others are the page's. */
function hostsAround(part: Node): Element[] {
  const hosts: Element[] = [];
  let root = part.getRootNode();
  while (root instanceof ShadowRoot && (hosts.length === 0 || root.host.localName === "agent-chat-launcher")) {
    hosts.push(root.host);
    root = root.host.getRootNode();
  }
  return hosts;
}

function remove({ element, slots }: ToolDrawing): void {
  if (element?.parentNode) element.remove();
  for (const slot of slots.splice(0)) slot.remove();
}

function draw(renderer: ToolRenderers[string], call: ToolBlock, slot: string): HTMLElement | undefined {
  try {
    const node = renderer(call);
    if (!node) return undefined;
    const element = node instanceof HTMLElement ? node : document.createElement("div");
    if (element !== node) element.append(node);
    element.slot = slot;
    return element;
  } catch (error) {
    console.warn(`agent-chat: toolRenderers.${call.tool} has failed, so the row of the call is shown.`, error);
    return undefined;
  }
}
