import type { ReactiveController, ReactiveControllerHost } from "lit";
import type { AssistantMessage, ToolBlock } from "../../session/messages.ts";
import type { ToolRenderers } from "../extensions.ts";

type ToolRenderer = ToolRenderers[string];

interface ToolDrawing {
  readonly call: ToolBlock;
  readonly renderer: ToolRenderer | undefined;
  readonly element: HTMLElement | undefined;
}

/**
 * The page's own drawings of the tool calls of one message. They become children of `<agent-chat>`, and stand in a slot
 * where the row of their call would be: so the page's style sheets and scripts reach them.
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
    const root = this.#host.getRootNode();
    if (!(root instanceof ShadowRoot)) return;
    for (const { element } of this.#drawings.values()) {
      if (element && element.parentNode !== root.host) root.host.append(element);
    }
  }

  hostDisconnected(): void {
    for (const { element } of this.#drawings.values()) element?.remove();
  }

  /** Draws the calls that are new or have changed. To be called before the message is drawn. */
  update(message: AssistantMessage, renderers: ToolRenderers): void {
    for (const call of message.blocks) {
      if (call.type !== "tool") continue;
      const known = this.#drawings.get(call.callId);
      const renderer = Object.hasOwn(renderers, call.tool) ? renderers[call.tool] : undefined;
      if (known?.call === call && known.renderer === renderer) continue;
      const element = renderer && draw(renderer, call, `${message.id}.${call.callId}`);
      if (known?.element !== element) known?.element?.remove();
      this.#drawings.set(call.callId, { call, renderer, element });
    }
  }

  /** Name of the slot with the drawing of a call; `undefined` where its row is shown. */
  slotOf({ callId }: ToolBlock): string | undefined {
    return this.#drawings.get(callId)?.element?.slot;
  }
}

function draw(renderer: ToolRenderer, call: ToolBlock, slot: string): HTMLElement | undefined {
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
