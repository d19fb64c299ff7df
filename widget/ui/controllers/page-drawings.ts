import type { ReactiveController, ReactiveControllerHost } from "lit";
import type { ImageType } from "../../../server/protocol/attachments.ts";
import type { ResultImage } from "../../../server/protocol/chat.ts";
import { type Message, sourcesIn, type ToolBlock } from "../../conversations/messages.ts";
import type { SourcesListener } from "../../markdown/renderers.ts";
import type { ChatContext } from "../context.ts";

interface Drawing {
  /** The value that the element was drawn for. */
  readonly subject: unknown;
  /** Whether the page had a function to draw it. */
  readonly isWanted: boolean;
  readonly element: HTMLElement | undefined;
  /** Pass the element through the inner shadow hosts, if it is not a child of the chat itself. */
  readonly slots: HTMLSlotElement[];
}

/** The key of the drawing for the message's header. Tool calls have their ids as keys. */
const HEADER = "";

/**
 * The parts of one message that the page draws: its header and tool calls. The drawings become children of our
 * outermost element, the chat or its launcher, and are slotted into the message, so that the page's style sheets and
 * scripts reach them.
 */
export class PageDrawings implements ReactiveController {
  readonly #host: ReactiveControllerHost & HTMLElement;
  /** By `HEADER` or call id. */
  readonly #drawings = new Map<string, Drawing>();
  /** By call id. */
  readonly #listeners = new Map<string, SourcesListener[]>();
  #sources: ReturnType<typeof sourcesIn> = [];

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

  /** Draws what is new or has changed. Must be called before the message is drawn. */
  update(message: Message, { messageHeader, toolRenderers: renderers, actions }: ChatContext): void {
    const { id: messageId, role } = message;
    const name = role === "page" ? message.name : undefined;
    const header = messageHeader && (() => messageHeader({ messageId, role, name }));
    this.#update(HEADER, messageId, `${messageId}.`, "messageHeader", header);
    const { blocks } = role === "assistant" ? message : { blocks: [] };
    const heard = this.#sources.at(-1);
    this.#sources = sourcesIn({ blocks });
    if (heard !== this.#sources.at(-1)) for (const it of [...this.#listeners.values()].flat()) this.#tell(it);
    for (const call of blocks) {
      if (call.type !== "tool") continue;
      const { callId, tool } = call;
      const renderer = Object.hasOwn(renderers, tool) ? renderers[tool] : undefined;
      const decide = (decision: typeof call.decision) => void actions.decide(callId, decision);
      const onSources = (listener: SourcesListener) => {
        this.#listeners.get(callId)?.push(listener);
        this.#tell(listener);
      };
      const draw = () => {
        this.#listeners.set(callId, []);
        return renderer?.({ ...call, images: call.images?.map(imageOf) }, { decide, onSources });
      };
      this.#update(callId, call, `${messageId}.${callId}`, `toolRenderers.${tool}`, renderer && draw);
    }
  }

  /** Slot name of a call's drawing, or by default the header's; `undefined` if the chat draws its own. */
  slotOf(key = HEADER): string | undefined {
    return this.#drawings.get(key)?.element?.slot;
  }

  #update(key: string, subject: unknown, slot: string, name: string, drawing?: () => Node | undefined): void {
    const known = this.#drawings.get(key);
    const isWanted = drawing !== undefined;
    if (known ? isSame(known.subject, subject) && known.isWanted === isWanted : !isWanted) return;
    const element = drawing && draw(drawing, slot, name);
    const isKept = known !== undefined && known.element === element;
    if (known && !isKept) remove(known);
    this.#drawings.set(key, { subject, isWanted, element, slots: isKept ? known.slots : [] });
  }

  /** In a microtask, so that a listener that throws stops nothing. */
  #tell(listener: SourcesListener): void {
    if (this.#sources.length > 0) queueMicrotask(() => listener(this.#sources));
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

/** The chat around a part, and a launcher around the chat. Shadow roots further out belong to the page. */
function hostsAround(part: Node): Element[] {
  const hosts: Element[] = [];
  let root = part.getRootNode();
  while (root instanceof ShadowRoot && (hosts.length === 0 || root.host.localName === "agent-chat-launcher")) {
    hosts.push(root.host);
    root = root.host.getRootNode();
  }
  return hosts;
}

/** Compares by content: a call read from storage is a new object, but its drawing must stay. */
function isSame(before: unknown, after: unknown): boolean {
  if (before === after || typeof before !== "object") return before === after;
  const [known, others] = [Object.entries(before ?? {}), Object(after)];
  return known.length === Object.keys(others).length && known.every(([name, value]) => others[name] === value);
}

/** A picture in the format of the events. */
function imageOf(image: NonNullable<ToolBlock["images"]>[number]): ResultImage | Omit<ResultImage, "data"> {
  const mime_type = image.omitted.mime_type as ImageType;
  return image.type === "omitted" ? { mime_type } : { mime_type, data: image.image_url.url.replace(/.*,/, "") };
}

function remove({ element, slots }: Drawing): void {
  if (element?.parentNode) element.remove();
  for (const slot of slots.splice(0)) slot.remove();
}

function draw(drawing: () => Node | undefined, slot: string, name: string): HTMLElement | undefined {
  try {
    const node = drawing();
    if (!node) return undefined;
    const element = node instanceof HTMLElement ? node : document.createElement("div");
    if (element !== node) element.append(node);
    element.slot = slot;
    return element;
  } catch (error) {
    console.warn(`agent-chat: ${name} has failed, so the chat shows its own.`, error);
    return undefined;
  }
}
