/** `WS /ws/chat`: any number of messages, one run at a time. */

import type { ServedAgent } from "../agent/run-agent.ts";
import type { Caller } from "../auth/access.ts";
import type { RequestContext, UpgradeContext } from "../http/request.ts";
import type { SocketListener, SocketMessage, WebSocketConnection } from "../http/websocket.ts";
import type { MemoryBudget, MessageMemory } from "../limits/memory-budget.ts";
import type { Release } from "../limits/message-limits.ts";
import type { ConversationState } from "../protocol/chat.ts";
import { ApiError, invalidRequest, toApiError } from "../protocol/errors.ts";
import { isTerminal, type NumberedEvent } from "../protocol/events.ts";
import type { RunHandle, RunReader } from "../runs/run.ts";
import type { StartOptions } from "../runs/run-registry.ts";
import { messageRules, type ParsedMessage, type RememberedState, type SocketCommand } from "./parse-message.ts";
import type { Service } from "./service.ts";

export const chatSocket =
  (service: Service) =>
  (connection: WebSocketConnection, caller: Caller, upgrade: UpgradeContext): void =>
    connection.listen(new ChatSocket(service, connection, caller, upgrade));

/** `GET /ws/chat` without an upgrade is an invalid request, whose answer advertises the protocol (RFC 9110, 7.8). */
export function upgradeRequired({ res }: RequestContext): never {
  res.setHeader("upgrade", "websocket");
  throw new ApiError("invalid_request", "This is a WebSocket address. Connect to it with ws:// or wss://.");
}

/** The run that is answered on a socket. */
interface FollowedRun {
  run: RunHandle;
  reader: RunReader;
  /** Whether the run begins a new conversation. */
  isNew: boolean;
}

class ChatSocket implements SocketListener {
  readonly #service: Service;
  readonly #connection: WebSocketConnection;
  readonly #caller: Caller;
  readonly #upgrade: UpgradeContext;
  readonly #state: SocketState;
  #current: FollowedRun | undefined;
  #isClosed = false;

  constructor(service: Service, connection: WebSocketConnection, caller: Caller, upgrade: UpgradeContext) {
    this.#service = service;
    this.#connection = connection;
    this.#caller = caller;
    this.#upgrade = upgrade;
    this.#state = new SocketState(service.memory);
  }

  /** Resolves when the next message may be taken: a run goes on meanwhile. What is wrong with a message is answered. */
  async message({ data, isBinary, memory }: SocketMessage): Promise<void> {
    const { runtime, settings, parser } = this.#service;
    const served = runtime.current;
    const leave = served.life.use();
    try {
      if (isBinary) throw invalidRequest("", "Send text frames, not binary ones.");
      const rules = messageRules(served, settings, this.#caller);
      await this.#obey(await parser.parse("socket", data, rules, this.#state), served, memory);
    } catch (error) {
      this.#sendError(error);
    } finally {
      leave();
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#state.forget();
    this.#leave();
  }

  async #obey(command: SocketCommand, served: ServedAgent, memory: MessageMemory): Promise<void> {
    switch (command.type) {
      case "clear":
        this.#clear();
        break;
      case "stop":
        await this.#current?.run.stop();
        break;
      case "resume":
        await this.#resume(command.run, command.after);
        break;
      case "message":
        await this.#start({ ...command, served, memory });
    }
  }

  #clear(): void {
    this.#current?.run.discard();
    this.#leave();
    this.#state.forget();
    this.#connection.sendJson({ type: "cleared", data: "" });
  }

  async #start(message: ParsedMessage & Pick<StartOptions, "served" | "memory">): Promise<void> {
    const { request } = message;
    const { limits, runs } = this.#service;
    await limits.admitMessage(this.#caller);
    this.#refuseSecondRun();
    const { id: requestId, trace } = this.#upgrade;
    const options = { ...message, transport: "ws", isStreamed: true, requestId, trace } as const;
    const isNew = Object.keys(request.state).length === 0;
    this.#follow({ ...(await runs.start(this.#caller, options)), isNew });
  }

  async #resume(name: string, after: number): Promise<void> {
    this.#refuseSecondRun();
    const run = await this.#service.runs.find(this.#caller, name);
    const reader = await run.read(after);
    if (!reader.isAtEnd) {
      this.#follow({ run, reader, isNew: false });
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
    // The connection may have been lost meanwhile. The run notices that as it does with any other reader.
    if (this.#isClosed) this.#leave();
    else void this.#send(current);
  }

  /** Sends the events of a run until its end, or until the socket leaves it. */
  async #send(current: FollowedRun): Promise<void> {
    const { run, reader, isNew } = current;
    try {
      await run.started;
      // Even if the run fails, the next message does not continue the conversation before it.
      if (isNew && this.#current === current) this.#state.forget();
      for await (const events of reader) {
        if (this.#current !== current) return;
        const texts = events.map((event) => JSON.stringify(event));
        // Before the client can know of the end: its next message may come at once.
        if (this.#remember(events.at(-1), texts.at(-1) ?? "")) this.#current = undefined;
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
  #remember(event: NumberedEvent | undefined, text: string): boolean {
    if (event === undefined || !isTerminal(event)) return false;
    if (event.state !== undefined) this.#state.remember(event.state, text.length);
    return true;
  }

  /** The run was refused, or the client reads so slowly that events were dropped. */
  #fail(current: FollowedRun, error: unknown): void {
    if (this.#current !== current) return;
    this.#current = undefined;
    if (error instanceof ApiError && error.code === "run_expired") this.#connection.disconnect();
    else this.#sendError(error);
  }

  /** The run goes on without this socket, or is over. */
  #leave(): void {
    const current = this.#current;
    this.#current = undefined;
    current?.reader.close();
  }

  #sendError(error: unknown): void {
    if (!(error instanceof ApiError)) this.#service.log.failure(error);
    if (!this.#connection.isClosing) this.#connection.sendError(toApiError(error));
  }
}

/** What a remembered state takes beside its text, about. */
const ENTRY_BYTES = 500;

/** The state that a plain message continues from. It is dropped when messages need the memory: the client has it, too. */
class SocketState {
  value: RememberedState = {};
  /** About how much memory it takes. */
  bytes = 0;
  readonly #memory: MemoryBudget;
  #release: Release | undefined;

  constructor(memory: MemoryBudget) {
    this.#memory = memory;
  }

  /** `state` is as the client got it: the next message checks it like any other. */
  remember(state: ConversationState, bytes: number): void {
    this.forget();
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
  }

  #drop(): void {
    this.value = "dropped";
    this.bytes = 0;
  }
}
