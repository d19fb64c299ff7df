/** Lets visitors in, over HTTP and to sockets alike: where they are, which key they bring, from which page. */

import type { IncomingMessage } from "node:http";
import { anonymous, authorize, bearerToken, type Visitor } from "./access.ts";
import type { Config } from "./config.ts";
import type { Caller } from "./http/caller.ts";
import { header } from "./http/exchange.ts";
import type { Access } from "./http/router.ts";
import type { AdmissionControl } from "./limits/admission-control.ts";
import { addressGroup, clientAddress, isTrustedPeer } from "./limits/client-address.ts";
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
    const transport = access === "chat" ? visitor.transport : access;
    const verdict = this.#verdictOn({ ...visitor, transport });
    const isGuess = verdict instanceof ApiError && verdict.code === "unauthorized";
    // One question, after the key was judged: between two, many guesses could come at once.
    if (isGuess && visitor.key !== undefined) await this.#admission.wrongKey(visitor.address);
    else await this.#admission.rightKey(visitor.address);
    if (verdict instanceof ApiError) throw verdict;
    return verdict;
  }

  #verdictOn(visitor: Visitor): Caller | ApiError {
    try {
      return authorize(this.#config(), visitor);
    } catch (error) {
      if (error instanceof ApiError) return error;
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
        `A request from ${address} names another client in ${proxies.header}. If that is ` +
          `your proxy, name it in PARLEY_TRUSTED_PROXIES; until then ${untilNamed(address)}.`,
      );
    }
    return address;
  }
}

/** What an unnamed proxy at this address means for the limits. */
function untilNamed(address: string): string {
  return addressGroup(address) === undefined
    ? "no limit per address holds for its clients, and wrong keys of one of them lock out all"
    : "all its clients count as one address";
}
