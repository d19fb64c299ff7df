import type { HttpHandler } from "../http/exchange.ts";
import type { Late } from "../node/late.ts";
import { chat } from "./chat.ts";
import { type ChatSocket, chatSocket } from "./chat-socket.ts";
import { MessageParser } from "./message-parser.ts";
import { cancelRun, runEvents } from "./runs.ts";
import type { Service } from "./service.ts";

/** The endpoints that take messages and give answers. */
export interface ChatEndpoints {
  readonly chat: HttpHandler;
  readonly runEvents: HttpHandler;
  readonly cancelRun: HttpHandler;
  readonly chatSocket: ChatSocket;
  /** Ends what reads large messages. */
  close(): Promise<void>;
}

/** They come when the first message needs them, or a moment after the start: who asks for `/health` does not wait for them. */
export type LateChatEndpoints = Late<ChatEndpoints>;

export function chatEndpoints(service: Service): ChatEndpoints {
  const parser = new MessageParser(service.rules, service.parseWorker);
  return {
    chat: chat(service, parser),
    runEvents: runEvents(service),
    cancelRun: cancelRun(service),
    chatSocket: chatSocket(service, parser),
    close: () => parser.close(),
  };
}
