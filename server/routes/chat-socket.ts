/** `WS /ws/chat`: any number of messages, one run at a time. */

import type { IncomingMessage } from "node:http";
import type { ServedAgent } from "../agent/served-agent.ts";
import type { Caller } from "../auth/access.ts";
import type { RequestContext, UpgradeContext } from "../http/request.ts";
import type { SocketListener, SocketMessage, WebSocketConnection } from "../http/websocket.ts";
import type { MemoryBudget } from "../limits/memory-budget.ts";
import type { Release } from "../limits/message-limits.ts";
import type { TraceHeaders } from "../observe/run-observer.ts";
import type { ConversationState } from "../protocol/chat.ts";
import { ApiError, ERRORS, invalidRequest, toApiError } from "../protocol/errors.ts";
import type { NumberedEvent } from "../protocol/events.ts";
import { isRecord } from "../protocol/json.ts";
import type { RememberedState, SocketCommand } from "./message.ts";
import { messageRules } from "./parse-message.ts";
import type { Service } from "./service.ts";
import {
  admitMessage,
  admitReader,
  parseMessage,
  type ReadMessage,
  type StartedMessage,
  startMessage,
  tokenOf,
} from "./start-message.ts";

export const chatSocket =
  (service: Service) =>
  (connection: WebSocketConnection, caller: Caller, upgrade: UpgradeContext): void =>
    connection.listen(new ChatSocket(service, connection, caller, upgrade));

/** `GET /ws/chat` without an upgrade is an invalid request, whose answer advertises the protocol (RFC 9110, 7.8). */
export function upgradeRequired({ res }: RequestContext): never {
  res.setHeader("upgrade", "websocket");
  throw new ApiError("invalid_request", "This is a WebSocket address. Connect to it with ws:// or wss://.");
}

/** The run whose events are sent on a socket. */
type FollowedRun = Omit<StartedMessage, "isStreamed" | "agent" | "asked">;

class ChatSocket implements SocketListener {
  readonly #service: Service;
  readonly #connection: WebSocketConnection;
  readonly #caller: Caller;
  readonly #requestId: string;
  readonly #trace: TraceHeaders;
  /** The upgrade request, kept only for `authenticate`, which reads its headers as those of an HTTP message. */
  readonly #req: IncomingMessage | undefined;
  /** The last token by which the client identified its user. */
  #token: string | undefined;
  readonly #state: SocketState;
  #current: FollowedRun | undefined;
  #isClosed = false;

  constructor(service: Service, connection: WebSocketConnection, caller: Caller, upgrade: UpgradeContext) {
    this.#service = service;
    this.#connection = connection;
    this.#caller = caller;
    this.#requestId = upgrade.id;
    this.#trace = upgrade.trace;
    this.#req = service.runtime.current.authenticate === undefined ? undefined : upgrade.req;
    this.#token = tokenOf(upgrade.req);
    this.#state = new SocketState(service.memory);
  }

  /** Resolves when the next message may be read, even if a run continues. Errors in a message are sent as answers. */
  async message({ data, isBinary, memory }: SocketMessage): Promise<void> {
    try {
      const brought = { requestId: this.#requestId, trace: this.#trace, memory };
      const started = await startMessage(this.#service, brought, async (served) => {
        if (isBinary) throw invalidRequest("", "Send text frames, not binary ones.");
        let sender = this.#caller;
        const message = { parser: "socket", bytes: data, remembered: this.#state } as const;
        const command = await parseMessage(this.#service, message, async (body) => {
          sender = await this.#admit(body, served);
          return messageRules(served, this.#service.settings, sender);
        });
        return this.#obey(command, sender);
      });
      if (started !== undefined) this.#follow(started);
    } catch (error) {
      this.#sendError(error);
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#state.forget();
    this.#leave();
  }

  /** The caller with its user, for commands that need one. @throws ApiError */
  async #admit(body: unknown, served: ServedAgent): Promise<Caller> {
    // A body that is too large to be parsed here can only be a message.
    const type = isRecord(body) ? body.type : undefined;
    if (type === "clear" || type === "stop" || type === "authenticate") return this.#caller;
    const visit = () => {
      if (this.#req === undefined) throw new UpgradeForgotten();
      return { req: this.#req, requestId: this.#requestId, token: this.#token };
    };
    const admit = type === "resume" ? admitReader : admitMessage;
    const sender = await admit(this.#service, served, this.#caller, visit);
    this.#meet(sender.user?.id);
    return sender;
  }

  /** Drops what belongs to another user, who used the same connection before. */
  #meet(user: string | undefined): void {
    const owner = this.#current?.user;
    if (owner !== undefined && owner !== user) this.#leave();
    this.#state.meet(user);
  }

  /** Carries out a command. A message is returned, to be started. */
  async #obey(command: SocketCommand, sender: Caller): Promise<ReadMessage | undefined> {
    if (command.type === "message") {
      this.#refuseSecondRun();
      return { ...command, sender, transport: "ws", isStreamed: true };
    }
    if (command.type === "clear") this.#clear();
    else if (command.type === "stop") await this.#current?.run.stop();
    else if (command.type === "authenticate") this.#token = command.token;
    else await this.#resume(sender, command.run, command.after);
    return undefined;
  }

  #clear(): void {
    this.#current?.run.discard();
    this.#leave();
    this.#state.forget();
    this.#connection.sendJson({ type: "cleared", data: "" });
  }

  async #resume(sender: Caller, name: string, after: number): Promise<void> {
    this.#refuseSecondRun();
    const run = await this.#service.runs.find(sender, name);
    const reader = await run.read(after);
    if (!reader.isAtEnd) {
      this.#follow({ run, reader, isNew: false, user: sender.user?.id });
      return;
    }
    reader.close();
    throw invalidRequest("/after", `This run has ended, and event ${after} was its last one.`);
  }

  #refuseSecondRun(): void {
    if (this.#current === undefined) return;
    throw new ApiError("run_in_progress", "The last message is still being answered.");
  }

  #follow(current: FollowedRun): void {
    this.#current = current;
    // If the connection was lost meanwhile, the run loses this reader, as it may lose any other one.
    if (this.#isClosed) this.#leave();
    else void this.#send(current);
  }

  /** Sends the events of a run until its end, or until the socket leaves it. */
  async #send(current: FollowedRun): Promise<void> {
    const { run, reader, isNew } = current;
    try {
      await run.started;
      // Even if the run fails, the next message must not continue the conversation before it.
      if (isNew && this.#current === current) this.#state.forget();
      for await (const events of reader) {
        if (this.#current !== current) return;
        const texts = events.map((event) => JSON.stringify(event));
        // Before the end is sent, because the client's next message may follow at once.
        if (this.#remember(current, events.at(-1), texts.at(-1) ?? "")) this.#current = undefined;
        const drained = this.#connection.sendAll(texts);
        if (drained !== undefined) await drained;
      }
      if (this.#current === current) this.#current = undefined;
    } catch (error) {
      this.#fail(current, error);
    } finally {
      reader.close();
    }
  }

  /** Returns whether the event is the last one of its run. */
  #remember({ user }: FollowedRun, event: NumberedEvent | undefined, text: string): boolean {
    if (event?.type !== "done" && event?.type !== "error") return false;
    if (event.state !== undefined) this.#state.remember(event.state, text.length, user);
    return true;
  }

  /** The run was refused, or the client reads so slowly that events were dropped. */
  #fail(current: FollowedRun, error: unknown): void {
    if (this.#current !== current) return;
    this.#current = undefined;
    if (error instanceof ApiError && error.code === "run_expired") this.#connection.disconnect();
    else this.#sendError(error);
  }

  /** Stops following the run, which has ended or continues without this socket. */
  #leave(): void {
    const current = this.#current;
    this.#current = undefined;
    current?.reader.close();
  }

  #sendError(error: unknown): void {
    if (error instanceof UpgradeForgotten) {
      this.#connection.close(ERRORS.shutting_down.close, "connect again");
      return;
    }
    if (!(error instanceof ApiError)) this.#service.log.failure(error);
    if (!this.#connection.isClosing) this.#connection.sendError(toApiError(error));
  }
}

/** The socket was opened when the agent had no users, so its upgrade was not kept: its client has to reconnect. */
class UpgradeForgotten extends Error {}

/** Approximate memory of a remembered state beside its text. */
const ENTRY_BYTES = 500;

/** The state that a message without one continues from. Dropped if messages need the memory: the client has it, too. */
class SocketState {
  value: RememberedState = {};
  /** About how much memory it takes. */
  bytes = 0;
  readonly #memory: MemoryBudget;
  #release: Release | undefined;
  /** Id of the user that the state belongs to. */
  #user: string | undefined;

  constructor(memory: MemoryBudget) {
    this.#memory = memory;
  }

  /** `state` is as the client got it: it is checked with the next message like any other. */
  remember(state: ConversationState, bytes: number, user: string | undefined): void {
    this.forget();
    this.#user = user;
    if (Object.keys(state).length === 0) return;
    this.#release = this.#memory.addDroppable(bytes + ENTRY_BYTES, () => this.#drop());
    if (this.#release === undefined) this.#drop();
    else {
      this.value = state;
      this.bytes = bytes;
    }
  }

  /** The next message begins a new conversation. */
  forget(): void {
    this.#release?.();
    this.#release = undefined;
    this.value = {};
    this.bytes = 0;
    this.#user = undefined;
  }

  /** Called with the sender of the next message: drops the state of any other user. */
  meet(user: string | undefined): void {
    if (this.#user === undefined || this.#user === user) return;
    this.forget();
    this.#drop();
  }

  #drop(): void {
    this.value = "dropped";
    this.bytes = 0;
  }
}
