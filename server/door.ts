/** Lets visitors in, over HTTP and to sockets alike: where they are, which key they bring, from which page. */

import type { IncomingMessage } from "node:http";
import { anonymous, authorize, bearerToken, type Visitor } from "./access.ts";
import type { Config } from "./config.ts";
import type { Caller } from "./http/caller.ts";
import { header } from "./http/exchange.ts";
import type { Access } from "./http/router.ts";
import type { AdmissionControl } from "./limits/admission-control.ts";
import { clientAddress, isTrustedPeer } from "./limits/client-address.ts";
import type { Log } from "./log.ts";
import { ApiError } from "./protocol/api-error.ts";

export class Door {
  readonly #config: () => Config;
  readonly #admission: AdmissionControl;
  readonly #log: Log;
  #hasWarned = false;

  /** The settings are asked for with each visitor, since keys and origins can change while the server runs. */
  constructor(config: () => Config, admission: AdmissionControl, log: Log) {
    this.#config = config;
    this.#admission = admission;
    this.#log = log;
  }

  /** Who asks for something, before anything is known to be true of it. */
  visitor(req: IncomingMessage, transport: Visitor["transport"], query: URLSearchParams): Visitor {
    const bearer = bearerToken(header(req, "authorization"));
    return {
      transport,
      // Only a socket of a browser has to put its key there: it cannot send headers.
      key: transport === "socket" ? query.get("key") || bearer : bearer,
      origin: header(req, "origin"),
      host: header(req, "host"),
      address: this.#addressOf(req),
    };
  }

  /** At once where everybody may enter. @throws ApiError `unauthorized`, `forbidden`, or `rate_limited` for who has guessed keys too often. */
  letIn(visitor: Visitor, access: Access): Caller | Promise<Caller> {
    return access === "open" ? anonymous(visitor) : this.#judge(visitor, access);
  }

  async #judge(visitor: Visitor, access: Exclude<Access, "open">): Promise<Caller> {
    await this.#admission.beforeKey(visitor.address);
    try {
      const transport = access === "chat" ? visitor.transport : access;
      return authorize(this.#config(), { ...visitor, transport });
    } catch (error) {
      const isGuess = error instanceof ApiError && error.code === "unauthorized";
      if (isGuess && visitor.key !== undefined) await this.#admission.wrongKey(visitor.address);
      throw error;
    }
  }

  #addressOf(req: IncomingMessage): string {
    const { proxies } = this.#config();
    const peer = req.socket.remoteAddress;
    const forwarded = header(req, proxies.header);
    const address = clientAddress(peer, forwarded, proxies);
    // Every client would then be counted as one: the limits for an address would be limits for all.
    if (forwarded !== undefined && !this.#hasWarned && !isTrustedPeer(peer, proxies)) {
      this.#hasWarned = true;
      this.#log.warning(
        `A request from ${address} names another client in ${proxies.header}. If that is your proxy, name it in PARLEY_TRUSTED_PROXIES; until then all its clients count as one address.`,
      );
    }
    return address;
  }
}
