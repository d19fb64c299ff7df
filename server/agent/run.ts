import type { StreamEvent } from "../protocol/events.ts";
import { ProviderError } from "../providers/failures/provider-error.ts";
import type { Conversation } from "../providers/provider.ts";
import { ModelTurn } from "./model-turn.ts";
import { RunAbort } from "./run-abort.ts";
import { cutShort, failed, finish, NOTHING_SAID } from "./run-end.ts";
import { type RunWatch, UNWATCHED } from "./run-watch.ts";
import type { Progress, Runner, RunRequest } from "./runner.ts";
import { runTools } from "./tools.ts";

/** Made once: an exception takes its stack, and this one comes with every run. */
const OVER = new RunAbort("gone");

/**
 * Runs the agent on one message: model, tools, model again, until the answer. Every transport only encodes
 * what this yields: what came together is one batch, and none is empty. The last event is exactly one `done`
 * or `error`; after an abort of the kind "gone" there is none. It does not throw. Aborting the controller ends
 * the run as the `RunAbort` says; it is aborted at the end as well, so that nothing of a run lives on.
 */
export async function* runAgent(
  runner: Runner,
  request: RunRequest,
  controller: AbortController,
  watch: RunWatch = UNWATCHED,
): AsyncGenerator<readonly StreamEvent[], void> {
  const { agent } = runner;
  const { signal } = controller;
  const progress: Progress = { said: "", unfinished: "", usage: undefined, model: undefined };
  let conversation: Conversation | undefined;
  try {
    conversation = openConversation(runner, request);
    for (let left = agent.maxTurns - 1; ; left--) {
      signal.throwIfAborted();
      const turnWatch = watch.turn();
      const turn = new ModelTurn(runner, progress, turnWatch);
      // Here and not in a generator of its own: each one between the model and the log costs every token.
      try {
        for await (const events of conversation.ask(signal, turnWatch.answered)) {
          const told = turn.take(events);
          if (told.length > 0) yield told;
          if (turn.finish !== undefined) break;
        }
        if (turn.finish === undefined) throw turn.broken(signal);
      } catch (error) {
        const told = turn.fail(error);
        if (told.length > 0) yield told;
        throw error;
      } finally {
        turn.close();
      }
      if (turn.calls.length === 0) {
        const said = turn.finish === "stop" ? answered(turn.said) : turn.said;
        yield finish(runner, conversation, progress, said, turn.finish);
        return;
      }
      if (left === 0) {
        conversation.interrupt(turn.said.trim() === "" ? NOTHING_SAID.max_turns : turn.said);
        yield finish(runner, conversation, progress, turn.said, "max_turns");
        return;
      }
      conversation.answer(
        yield* runTools(agent.tools, turn.calls, signal, runner.toolLimits, watch),
      );
    }
  } catch (error) {
    if (signal.aborted && conversation !== undefined) {
      const last = cutShort(runner, request, conversation, progress, signal);
      if (last !== undefined) yield [last];
    } else {
      watch.failure(error);
      yield [failed(runner, request, error)];
    }
  } finally {
    // Whoever stops reading in the middle ends the model request and the tools too.
    controller.abort(OVER);
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

function answered(said: string): string {
  if (said.trim() !== "") return said;
  throw new ProviderError("provider_error", "The model gave an empty answer. Please try again.");
}
