/** Who looks on while an agent works, for logs and metrics. What it does is quick, and never throws. */

import type { Usage } from "../protocol/chat.ts";
import type { StreamEvent } from "../protocol/events.ts";
import type { ToolCall, TurnFinish } from "../providers/provider.ts";

/** How a run's answer is sent. */
export type RunTransport = "json" | "sse" | "ws";

/** Watches one run. */
export interface RunWatch {
  /** Told of every event, in order, before any client has it. */
  event(event: StreamEvent): void;
  /** A model request begins. */
  turn(): TurnWatch;
  /** Does the work of a tool that the agent has: returns what `work`, which is called once, comes to. */
  tool<Outcome extends ToolOutcome>(call: ToolCall, work: () => Promise<Outcome>): Promise<Outcome>;
  /** Told of what failed, with its cause. */
  failure(error: unknown): void;
  /** The run is over. If no event before was its last one, nobody was left to read it. */
  end(): void;
}

/** `errorType` of what was ended from outside. */
export const ABORTED = "aborted";

/** What a tool call came to. */
export interface ToolOutcome {
  /** What kind of failure it was: `aborted`, `timeout`, `invalid_arguments`, or the name of what was thrown. */
  readonly errorType?: string | undefined;
}

/** Watches one model request. */
export interface TurnWatch {
  /** The provider has answered, and named the request so; the last of several tries counts. */
  answered(requestId: string): void;
  /** A fallback model is asked in place of the one that failed so. */
  failedOver(report: Error): void;
  /** `model` is that of an agent with fallback models which has answered. */
  end(finish: TurnFinish, usage: Usage | undefined, model: string | undefined): void;
  failed(error: unknown): void;
  /** Called in any case, last: without an end or a failure before, the request was given up. */
  close(): void;
}

const UNWATCHED_TURN: TurnWatch = {
  answered() {},
  failedOver() {},
  end() {},
  failed() {},
  close() {},
};

/** For a run that nobody watches. */
export const UNWATCHED: RunWatch = {
  event() {},
  turn: () => UNWATCHED_TURN,
  tool: (_call, work) => work(),
  failure() {},
  end() {},
};

/** Two who watch the same run. */
export function watchTogether(first: RunWatch, second: RunWatch): RunWatch {
  return {
    event(event) {
      first.event(event);
      second.event(event);
    },
    turn() {
      const [one, other] = [first.turn(), second.turn()];
      return {
        answered(requestId) {
          one.answered(requestId);
          other.answered(requestId);
        },
        failedOver(report) {
          one.failedOver(report);
          other.failedOver(report);
        },
        end(finish, usage, model) {
          one.end(finish, usage, model);
          other.end(finish, usage, model);
        },
        failed(error) {
          one.failed(error);
          other.failed(error);
        },
        close() {
          one.close();
          other.close();
        },
      };
    },
    tool: (call, work) => first.tool(call, () => second.tool(call, work)),
    failure(error) {
      first.failure(error);
      second.failure(error);
    },
    end() {
      first.end();
      second.end();
    },
  };
}
