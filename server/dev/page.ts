/** What the chat page hears under `parley dev`: which token opens `/dev/`, and what is said there of the agent's files. */

import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { EventEmitter, on } from "node:events";
import type { IncomingMessage } from "node:http";
import { isLoopbackHost } from "../config/exposure.ts";
import type { Routes } from "../http/dispatch.ts";
import type { RequestContext } from "../http/request.ts";
import { sendEventStream, whenClosed } from "../http/respond.ts";
import { ApiError } from "../protocol/errors.ts";
import type { UserChoice } from "./users.ts";

type DevEvent = (
  | { readonly type: "reloaded" }
  /** The agent cannot be loaded: where and why. */
  | { readonly type: "broken"; readonly sentence: string }
) & { readonly users?: readonly UserChoice[] };

const TIMES = { keepAliveMs: 15_000, sendMs: 30_000 };

export class DevPage {
  /** Opens `/dev/` until this process ends. */
  readonly token = randomBytes(24).toString("base64url");
  readonly #digest = digestOf(this.token);
  readonly #events = new EventEmitter().setMaxListeners(0);
  readonly #end = new AbortController();
  /** The users that the page can ask as, if the agent's module names them. */
  choices: readonly UserChoice[] | undefined;
  #last: DevEvent = { type: "reloaded" };

  readonly routes: Routes = {
    "GET /dev/events": { access: "open", handle: (context) => this.#stream(context) },
  };

  /** A request that may not enter is answered as if nothing were there. @throws ApiError */
  readonly guard = ({ path, req }: RequestContext): void => {
    if (!/^\/dev(?:\/|$)/.test(path) || this.#mayEnter(req)) return;
    throw new ApiError("not_found", "There is nothing at this address.");
  };

  say(event: DevEvent): void {
    this.#last = event;
    this.#events.emit("said", this.#complete(event));
  }

  /** Ends all streams, which the server would wait for. */
  close(): void {
    this.#end.abort();
  }

  /** A page of another site can make its name resolve to this machine, but sends that name as `Host`. */
  #mayEnter({ headers }: IncomingMessage): boolean {
    const { authorization = "", host = "", origin } = headers;
    const url = `http://${host}`;
    const isLoopback = URL.canParse(url) && isLoopbackHost(new URL(url).hostname);
    const isOwnPage = origin === undefined || origin === url;
    const isKnown = timingSafeEqual(digestOf(authorization.replace(/^Bearer /i, "")), this.#digest);
    return isLoopback && isOwnPage && isKnown;
  }

  async #stream({ res, method }: RequestContext): Promise<void> {
    const gone = new AbortController();
    whenClosed(res, () => gone.abort());
    const signal = AbortSignal.any([gone.signal, this.#end.signal]);
    if (method === "HEAD") res.end();
    else await sendEventStream(res, TIMES, this.#follow(signal), (event) => `data: ${JSON.stringify(event)}\n\n`);
  }

  async *#follow(signal: AbortSignal): AsyncGenerator<DevEvent[]> {
    const said = on(this.#events, "said", { signal });
    try {
      yield [this.#complete(this.#last)];
      yield* said;
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  #complete(event: DevEvent): DevEvent {
    return this.choices === undefined ? event : { ...event, users: this.choices };
  }
}

function digestOf(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}
