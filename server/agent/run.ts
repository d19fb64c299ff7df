import { ProviderError } from "../providers/failures/provider-error.ts";
import type { Conversation, ProviderEvent } from "../providers/provider.ts";
import { ModelTurn } from "./model-turn.ts";
import { RunAbort } from "./run-abort.ts";
import { cutShort, failed, finish, NOTHING_SAID } from "./run-end.ts";
import { type RunWatch, UNWATCHED } from "./run-watch.ts";
import type { Progress, Runner, RunRequest, TellRun } from "./runner.ts";
import { runTools } from "./tools.ts";

/**
 * Runs the agent on one message: model, tools, model again, until the answer. Every transport only encodes what it
 * tells. The last event is exactly one `done` or `error`; after an abort of the kind "gone" there is none. It does not
 * reject. Aborting the controller ends the run as the `RunAbort` says; it is aborted at the end as well, so that nothing
 * of a run lives on.
 */
export async function runAgent(
  runner: Runner,
  request: RunRequest,
  controller: AbortController,
  tell: TellRun,
  watch: RunWatch = UNWATCHED,
): Promise<void> {
  const { agent } = runner;
  const { signal } = controller;
  const progress: Progress = { said: "", unfinished: "", usage: undefined, model: undefined };
  let conversation: Conversation | undefined;
  // Asked with each batch: the signal's own getter is not cheap.
  let isAborted = signal.aborted;
  signal.addEventListener("abort", () => (isAborted = true), { once: true });
  try {
    conversation = openConversation(runner, request);
    for (let left = agent.maxTurns - 1; ; left--) {
      signal.throwIfAborted();
      const turnWatch = watch.turn();
      const turn = new ModelTurn(runner, progress, turnWatch);
      try {
        const take = (events: readonly ProviderEvent[]) => {
          // For a model that goes on talking.
          if (isAborted) throw signal.reason;
          const told = turn.take(events);
          return told.length > 0 ? tell(told) : undefined;
        };
        await conversation.ask(signal, take, turnWatch.answered);
        if (turn.finish === undefined) throw turn.broken(signal);
      } catch (error) {
        const told = turn.fail(error);
        if (told.length > 0) await tell(told);
        throw error;
      } finally {
        turn.close();
      }
      if (turn.calls.length === 0) {
        const said = turn.finish === "stop" ? answered(turn.said) : turn.said;
        await tell(finish(runner, conversation, progress, said, turn.finish));
        return;
      }
      if (left === 0) {
        conversation.interrupt(turn.said.trim() === "" ? NOTHING_SAID.max_turns : turn.said);
        await tell(finish(runner, conversation, progress, turn.said, "max_turns"));
        return;
      }
      conversation.answer(await runTools(agent.tools, turn.calls, { signal, limits: runner.toolLimits, tell, watch }));
    }
  } catch (error) {
    if (signal.aborted && conversation !== undefined) {
      const last = cutShort(runner, request, conversation, progress, signal);
      if (last !== undefined) await tell([last]);
    } else {
      watch.failure(error);
      await tell([failed(runner, request, error)]);
    }
  } finally {
    // Whatever is left of the model's request and of the tools ends here.
    controller.abort(RunAbort.of("gone"));
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
