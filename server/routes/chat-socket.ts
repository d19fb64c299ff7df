import { runAgent } from "../agent/run.ts";
import { RunAbort } from "../agent/run-abort.ts";
import type { RunRequest } from "../agent/runner.ts";
import { parseJson } from "../http/body.ts";
import type { Caller } from "../http/caller.ts";
import type { Exchange } from "../http/exchange.ts";
import type { SocketLine } from "../http/socket-line.ts";
import type { FrameMeter } from "../limits/admission.ts";
import { ApiError, invalidRequest, toApiError } from "../protocol/api-error.ts";
import type { ConversationState } from "../protocol/chat.ts";
import { CLOSE } from "../protocol/close-codes.ts";
import { toErrorEvent } from "../protocol/error-event.ts";
import { parseSocketMessage } from "./parse-chat.ts";
import type { RunHandle, Service } from "./service.ts";

/** Serves one accepted socket until it closes. */
export type ChatSocket = (line: SocketLine, caller: Caller) => void;

/** `WS /ws/chat`: any number of messages, one run at a time. */
export const chatSocket =
  (service: Service): ChatSocket =>
  (line, caller) => {
    const conversation = new SocketConversation(service, line, caller);
    line.onMessage((data, isBinary) => conversation.receive(data, isBinary));
    line.onClose(() => conversation.close());
  };

/** A plain request to the socket's address: RFC 9110, 15.5.22 has it name the protocol. */
export function speaksWebSocket({ res }: Exchange): void {
  res.setHeader("upgrade", "websocket");
  throw new ApiError(
    "invalid_request",
    "This address speaks WebSocket: connect to it with ws:// or wss://.",
  );
}

/** What one socket remembers: the last state, so that a plain `{message}` continues, and the run. */
class SocketConversation {
  readonly #service: Service;
  readonly #line: SocketLine;
  readonly #caller: Caller;
  /** As the client got it; it is read again like any other. */
  #state: ConversationState = {};
  #run: RunHandle | undefined;
  readonly #frames: FrameMeter;

  constructor(service: Service, line: SocketLine, caller: Caller) {
    this.#service = service;
    this.#line = line;
    this.#caller = caller;
    this.#frames = service.admission.frames();
  }

  receive(data: Buffer, isBinary: boolean): void {
    try {
      this.#frames.count();
      if (isBinary) throw invalidRequest("", "Send text frames, not binary ones.");
      const command = parseSocketMessage(parseJson(data), this.#state, this.#service.rules());
      if (command.type === "clear") this.#clear();
      else if (command.type === "stop") this.#run?.controller.abort(new RunAbort("stopped"));
      else this.#start(command.request);
    } catch (error) {
      this.#refuse(error);
    }
  }

  close(): void {
    this.#run?.controller.abort(new RunAbort("gone"));
  }

  #clear(): void {
    this.#run?.controller.abort(new RunAbort("gone"));
    this.#run = undefined;
    this.#state = {};
    void this.#line.send({ type: "cleared", data: "" });
  }

  #start(request: RunRequest): void {
    this.#service.admission.message(this.#caller);
    if (this.#run !== undefined) {
      throw new ApiError("run_in_progress", "The last message is still being answered.");
    }
    const run = this.#service.begin(this.#caller);
    this.#run = run;
    this.#answer(request, run).catch((error: unknown) => this.#service.runner.report(error));
  }

  async #answer(request: RunRequest, run: RunHandle): Promise<void> {
    try {
      for await (const event of runAgent(this.#service.runner, request, run.controller.signal)) {
        if (this.#run !== run) return;
        if (event.type === "done" || event.type === "error") {
          this.#run = undefined;
          this.#state = event.state ?? {};
        }
        await this.#line.send(event);
      }
    } finally {
      if (this.#run === run) this.#run = undefined;
      run.end();
    }
  }

  #refuse(error: unknown): void {
    const failure = toApiError(error);
    if (failure.code === "internal") this.#service.runner.report(error);
    void this.#line.send(toErrorEvent(failure));
    if (this.#frames.isAbused) this.#line.close(CLOSE.RATE_LIMITED, failure.code);
  }
}
