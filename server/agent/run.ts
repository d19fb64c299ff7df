import type { Usage } from "../protocol/chat.ts";
import type { StreamEvent } from "../protocol/events.ts";
import { ProviderError } from "../providers/failures/provider-error.ts";
import type { Conversation, ToolCall, TurnFinish } from "../providers/provider.ts";
import { HostedCalls } from "./hosted-calls.ts";
import { RunAbort } from "./run-abort.ts";
import { cutShort, failed, finish, NOTHING_SAID } from "./run-end.ts";
import { type RunWatch, type TurnWatch, UNWATCHED } from "./run-watch.ts";
import type { Progress, Runner, RunRequest } from "./runner.ts";
import { runTools } from "./tools.ts";

/** What one model turn came to. */
interface Turn {
  said: string;
  calls: ToolCall[];
  finish: TurnFinish;
}

/**
 * Runs the agent on one message: model, tools, model again, until the answer. Every transport only encodes
 * what this yields. The last event is exactly one `done` or `error`; after an abort of the kind "gone"
 * there is none. It does not throw. Aborting the controller ends the run as the `RunAbort` says; it is
 * aborted at the end as well, so that nothing of a run lives on.
 */
export async function* runAgent(
  runner: Runner,
  request: RunRequest,
  controller: AbortController,
  watch: RunWatch = UNWATCHED,
): AsyncGenerator<StreamEvent, void> {
  const { signal } = controller;
  const progress: Progress = { said: "", unfinished: "", usage: undefined, model: undefined };
  let conversation: Conversation | undefined;
  try {
    conversation = openConversation(runner, request);
    yield* takeTurns(runner, conversation, progress, signal, watch);
  } catch (error) {
    if (signal.aborted && conversation !== undefined) {
      yield* cutShort(runner, request, conversation, progress, signal);
    } else {
      watch.failure(error);
      yield failed(runner, request, error);
    }
  } finally {
    // Whoever stops reading in the middle ends the model request and the tools too.
    controller.abort(new RunAbort("gone"));
  }
}

function openConversation({ agent, provider }: Runner, request: RunRequest): Conversation {
  const tools = [...agent.tools.values()].map(({ name, description, parameters }) => ({
    name,
    description,
    parameters: parameters.json,
  }));
  return provider.open({ ...request, instructions: agent.instructions, tools });
}

async function* takeTurns(
  runner: Runner,
  conversation: Conversation,
  progress: Progress,
  signal: AbortSignal,
  watch: RunWatch,
): AsyncGenerator<StreamEvent, void> {
  const { agent } = runner;
  for (let left = agent.maxTurns - 1; ; left--) {
    signal.throwIfAborted();
    const turn = yield* takeTurn(runner, conversation, progress, signal, watch.turn());
    if (turn.calls.length === 0) {
      const said = turn.finish === "stop" ? answered(turn.said) : turn.said;
      return yield* finish(runner, conversation, progress, said, turn.finish);
    }
    if (left === 0) {
      const said = turn.said.trim() === "" ? NOTHING_SAID.max_turns : turn.said;
      conversation.interrupt(said);
      return yield* finish(runner, conversation, progress, turn.said, "max_turns");
    }
    const answers = yield* runTools(agent.tools, turn.calls, signal, runner.toolLimits);
    conversation.answer(answers);
  }
}

/** One model request. Throws when it was aborted, also where the provider then ends quietly. */
async function* takeTurn(
  runner: Runner,
  conversation: Conversation,
  progress: Progress,
  signal: AbortSignal,
  watch: TurnWatch,
): AsyncGenerator<StreamEvent, Turn> {
  let said = "";
  const calls: ToolCall[] = [];
  const hosted = new HostedCalls(runner.toolLimits.maxOutputChars);
  try {
    for await (const event of conversation.ask(signal)) {
      switch (event.type) {
        case "text":
          said += event.delta;
          progress.said = said;
          progress.unfinished = said;
          yield { type: "token", data: event.delta };
          break;
        case "thinking":
          yield { type: "thinking", data: event.delta };
          break;
        case "call":
          calls.push(event.call);
          break;
        case "hosted_call":
          yield hosted.begin(event.call);
          break;
        case "hosted_result":
          yield hosted.end(event.answer, event.durationMs);
          break;
        case "failover":
          watch.failedOver(event.report);
          break;
        case "end":
          yield* hosted.giveUp();
          progress.unfinished = "";
          progress.model = event.model;
          progress.usage = addUsage(progress.usage, event.usage);
          watch.end(event.finish, event.usage, event.model);
          return { said, calls, finish: event.finish };
      }
    }
    signal.throwIfAborted();
    throw new ProviderError(
      "provider_truncated",
      "The model's answer broke off. Please try again.",
    );
  } catch (error) {
    watch.failed(error);
    // Whoever saw a call begin must see how it ended.
    yield* hosted.giveUp();
    throw error;
  } finally {
    watch.close();
  }
}

function answered(said: string): string {
  if (said.trim() !== "") return said;
  throw new ProviderError("provider_error", "The model gave an empty answer. Please try again.");
}

function addUsage(sum: Usage | undefined, more: Usage | undefined): Usage | undefined {
  if (sum === undefined || more === undefined) return sum ?? more;
  return {
    input_tokens: sum.input_tokens + more.input_tokens,
    output_tokens: sum.output_tokens + more.output_tokens,
  };
}
