/** What one client, one key and the whole process may use; every figure is a setting. */

export interface Limits {
  /** Chat messages per minute; as many may come at once. 0: no limit. */
  readonly rates: {
    readonly perKey: number;
    readonly perAddress: number;
    /** In place of `perAddress` for widget keys, which stand in the source of public pages. */
    readonly widgetPerAddress: number;
    /** Wrong keys per minute. */
    readonly wrongKeysPerAddress: number;
    /** Frames per minute on one socket, whatever they hold. */
    readonly framesPerSocket: number;
  };
  /** Answers that may run at once. 0: no limit. */
  readonly runs: {
    readonly process: number;
    readonly perKey: number;
    readonly perAddress: number;
    readonly widgetPerAddress: number;
    /** Messages that may wait for one of `process`. */
    readonly queued: number;
    /** How long they wait, in milliseconds. */
    readonly queueMs: number;
  };
  /** Sockets that may be open at once. 0: no limit. */
  readonly sockets: {
    readonly process: number;
    readonly perAddress: number;
  };
}
