/** Types of the tables of routes. */

import type { Caller, Purpose } from "../auth/access.ts";
import type { ApiError } from "../protocol/errors.ts";
import type { RequestContext, UpgradeContext } from "./request.ts";
import type { WebSocketConnection } from "./websocket.ts";

/** Every route names its kind of access, so that a new route cannot omit the check. */
export type Route =
  | { access: "open"; handle(context: RequestContext): void | Promise<void> }
  | { access: Purpose; handle(context: RequestContext, caller: Caller): void | Promise<void> };

/** The paths of another protocol. */
export interface DoorPlace {
  path: RegExp;
  /** Only of a disabled door: a sentence that says how to enable it. */
  hint?: string;
  /** Only of an enabled door: encodes an error in the format of its protocol. */
  errorBody?(error: ApiError): object;
}

export interface SocketRoute {
  handle(connection: WebSocketConnection, caller: Caller, upgrade: UpgradeContext): void;
}

/** By `METHOD /path`; `{name}` stands for one segment of the path. */
export type Routes = Record<`${"GET" | "POST"} /${string}`, Route>;
export type SocketRoutes = Record<`WS /${string}`, SocketRoute>;
