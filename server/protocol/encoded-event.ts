/** An event of a run as it is sent: encoded once, whoever reads it and over whatever line. */

import type { StreamEvent } from "./events.ts";

export interface EncodedEvent {
  /** Place within its run: 1, 2, 3 and so on. */
  readonly id: number;
  readonly type: StreamEvent["type"];
  /** The event as one JSON text, its id included. */
  readonly json: string;
}

export function encodeEvent(event: StreamEvent, id: number): EncodedEvent {
  const { type } = event;
  // Almost every event is a piece of text, and writing out one known shape costs half.
  if (type === "token" || type === "thinking") {
    return { id, type, json: `{"type":"${type}","data":${JSON.stringify(event.data)},"id":${id}}` };
  }
  return { id, type, json: `${JSON.stringify(event).slice(0, -1)},"id":${id}}` };
}
