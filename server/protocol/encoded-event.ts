/** An event of a run as it is sent: encoded once, whoever reads it and over whatever line. */

import type { StreamEvent } from "./events.ts";

export interface EncodedEvent {
  /** Place within its run: 1, 2, 3 and so on. */
  readonly id: number;
  readonly type: StreamEvent["type"];
  /** The event as one JSON text, its id included. */
  readonly json: string;
  /** Size of the JSON in UTF-8. */
  readonly bytes: number;
}
