/** A server's life in its process: it listens, and a signal or a stray error ends it. */

import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Settings } from "./config/settings.ts";
import { ConfigError } from "./errors.ts";
import { describeFailure } from "./observe/describe-failure.ts";
import { framesIn } from "./project/load-project.ts";
import type { ParleyServer } from "./server.ts";

/** The URL of the chat page. @throws ConfigError that says why the server cannot listen */
export async function listen(http: Server, { port, host, basePath }: Settings): Promise<string> {
  try {
    http.listen(port, host);
    await once(http, "listening");
  } catch (error) {
    throw new ConfigError(listenProblem(error, host, port), { cause: error });
  }
  return `${originOf(http.address() as AddressInfo)}${basePath}/`;
}

/** A browser cannot open an address that stands for all of them. */
function originOf({ address, port }: AddressInfo): string {
  const host = ["0.0.0.0", "::"].includes(address) ? "localhost" : address;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

function listenProblem(error: unknown, host: string, port: number): string {
  switch (error instanceof Error && "code" in error ? error.code : undefined) {
    case "EADDRINUSE":
      return `Port ${port} is in use. Choose another, such as --port ${port < 65_535 ? port + 1 : 0}, or stop the program that uses it.`;
    case "EACCES":
      return `This user may not use port ${port}. Choose one above 1023 with --port.`;
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return `"${host}" is not an address of this machine. Choose one with --host, such as 127.0.0.1 or 0.0.0.0.`;
    case "EAI_AGAIN":
      return `The address of "${host}" could not be looked up in time. Try again, or choose an address with --host, such as 127.0.0.1 or 0.0.0.0.`;
    default:
      return `Cannot listen on ${host}:${port}: ${error instanceof Error ? error.message : error}`;
  }
}

/** Signals to a worker within this time are one. */
const SAME_SIGNAL_MS = 1000;

export interface OwnProcess {
  /** Whether a supervisor hands signals on to it. */
  isWorker: boolean;
  /** The project's. */
  folder: string | undefined;
}

/**
 * The first signal lets running answers finish, the second one ends the process at once. If it ends for another reason, the
 * last record of the log says why.
 */
export function closeOnSignal(server: ParleyServer, { isWorker, folder }: OwnProcess): void {
  const { log } = server;
  const sayWhy = (reason: string, error: unknown) => {
    const [place] = folder === undefined ? [] : framesIn(folder, error);
    log.warning(`Parley stops because ${reason}${place === undefined ? "" : ` (${place})`}.`);
  };
  let isClosing = false;
  let signalledAt = 0;
  const close = async () => {
    isClosing = true;
    // The process ends even if something cannot be closed.
    await server.drain().catch(log.failure);
  };
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.on(signal, () => {
      if (isClosing) {
        // A terminal and systemd signal every process themselves, and the supervisor of workers does it again.
        if (isWorker && performance.now() - signalledAt < SAME_SIGNAL_MS) return;
        process.exit(1);
      }
      signalledAt = performance.now();
      if (server.isBusy()) log.notice("Finishing running answers. A second signal stops at once.");
      void close().then(() => process.exit(0));
    });
  }
  // A tool that leaves a rejected promise behind must not end the other conversations.
  process.on("unhandledRejection", (reason) => log.failure(reason));
  // After an exception that was not caught, anything may be half done: this process takes no new messages.
  process.on("uncaughtException", async (error) => {
    log.failure(error);
    if (isClosing) return;
    await close();
    try {
      sayWhy(`of an exception that was not caught: ${describeFailure(error, false, String).split("\n", 1)[0]}`, error);
    } finally {
      process.exit(1);
    }
  });
  process.once("exit", () => {
    if (isClosing) return;
    sayWhy("process.exit() was called", new Error());
    // The server did not end as it should, whatever the tool meant to say.
    process.exitCode ||= 1;
  });
}
