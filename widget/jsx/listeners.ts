/** Listeners for the events of an element, under the names that a framework makes of a prefix and the event's. */
export type EventListeners<Prefix extends string> = {
  [Name in keyof GlobalEventHandlersEventMap as Name extends `agent-chat-${string}`
    ? `${Prefix}${Name}`
    : never]?: (event: GlobalEventHandlersEventMap[Name]) => void;
};
