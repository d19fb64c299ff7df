import type {} from "./public-types.ts";

type ChatEventName = Extract<keyof GlobalEventHandlersEventMap, `agent-chat-${string}`>;

/** Fires an event of `public-types.ts` with the fields declared there. It bubbles and crosses shadow roots. */
export function fireEvent<Name extends ChatEventName>(
  target: EventTarget,
  name: Name,
  fields: Omit<GlobalEventHandlersEventMap[Name], keyof Event>,
): void {
  target.dispatchEvent(Object.assign(new Event(name, { bubbles: true, composed: true }), fields));
}
