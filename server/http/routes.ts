/** What the tables of routes hold. Types alone. */

import type { Caller, Purpose } from "../auth/access.ts";
import type { ApiError } from "../protocol/errors.ts";
import type { RequestContext, UpgradeContext } from "./request.ts";
import type { WebSocketConnection } from "./websocket.ts";

/** A route names the kind of access, so that a new one cannot forget to ask. */
export type Route =
  | { access: "open"; handle(context: RequestContext): void | Promise<void> }
  | { access: Purpose; handle(context: RequestContext, caller: Caller): void | Promise<void> };

/** Where another protocol has its addresses. */
export interface DoorPlace {
  path: RegExp;
  /** Only of a closed door: how it is opened, in a sentence. */
  hint?: string;
  /** Only of an open one: the body of an error in the words of its protocol. */
  errorBody?(error: ApiError): object;
}

export interface SocketRoute {
  handle(connection: WebSocketConnection, caller: Caller, upgrade: UpgradeContext): void;
}

/** By `METHOD /path`; `{name}` stands for one segment of the path. */
export type Routes = Record<`${"GET" | "POST"} /${string}`, Route>;
export type SocketRoutes = Record<`WS /${string}`, SocketRoute>;
