/** What bounds the memory of all messages that are being received or answered, and of what can be done without. */
export interface RequestMemory {
  /** For one message. It holds nothing yet. */
  hold(): MemoryHold;
  /**
   * Counts bytes that can be done without. When messages, or newer bytes of this kind, need their room, `drop` is
   * called once, the oldest first. Returns what to call when they are let go of before; `undefined` when there
   * is no room for them even so.
   */
  spare(bytes: number, drop: () => void): (() => void) | undefined;
}

/** The memory of one message. */
export interface MemoryHold {
  /** For a message that says how long it will be. @throws ApiError `overloaded` when there is no room for it now. */
  expect(bytes: number): void;
  /** Counts bytes that have come. @throws ApiError `overloaded`, and then they are not counted. */
  grow(bytes: number): void;
  /** Keeps the bytes counted until all who share them have called what they got; further calls do nothing. */
  share(): () => void;
}
