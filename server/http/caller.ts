/** Kinds of key, named as in `PARLEY_API_KEY`, `PARLEY_CHAT_KEY` and `PARLEY_WIDGET_KEY`. */
export type KeyKind = "api" | "chat" | "widget";

/** Who makes a request or opened a socket: what limits are counted by and runs are bound to. */
export interface Caller {
  /** The kind of key that opened the door; "none" where none was needed. */
  readonly kind: KeyKind | "none";
  /** Stands for the key within this process, and tells nothing of it; absent where none was needed. */
  readonly keyId: string | undefined;
  /** Where the client is, as far as that can be known behind proxies. */
  readonly address: string;
}
