/** Lines for the operator, on standard error: standard output belongs to the start-up text. */

export interface Log {
  /** One line per answered request. */
  request(entry: RequestEntry): void;
  /** A sentence about the server itself. */
  notice(text: string): void;
  /** A failure with its cause: a bug, or a model provider that failed. */
  failure(error: unknown): void;
}

export interface RequestEntry {
  requestId: string;
  method: string;
  /** Without the query, which may hold a key. */
  path: string;
  status: number;
  ms: number;
}

/**
 * Writes lines without headers or bodies. What a provider said of a failure is written, since nobody could
 * mend it otherwise; should it hold one of `secrets`, that is struck out.
 */
export function createLog(output: (line: string) => void, secrets: readonly string[]): Log {
  const write = (line: string) =>
    output(secrets.reduce((text, secret) => text.replaceAll(secret, "[key]"), line));
  return {
    request({ requestId, method, path, status, ms }) {
      write(`${timestamp()} ${method} ${printable(path)} ${status} ${ms}ms ${requestId}`);
    },
    notice(text) {
      write(`${timestamp()} ${printable(text)}`);
    },
    failure(error) {
      write(`${timestamp()} ${printable(describe(error))}`);
    },
  };
}

function timestamp(): string {
  return new Date().toISOString();
}

/** Bugs with their stack; failures of others in one line, with the causes behind them. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const own = "code" in error ? `${error.code}: ${error.message}` : (error.stack ?? error.message);
  return error.cause === undefined ? own : `${own}\n  cause: ${describe(error.cause)}`;
}

/** A path or message from outside must not write lines or colours of its own. */
function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is removed.
  return text.replace(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g, "?");
}
