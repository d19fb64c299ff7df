import type { BedrockRuntimeClient, ConverseStreamOutput } from "@aws-sdk/client-bedrock-runtime";
import type { HistoryMessage } from "../../protocol/chat.ts";
import { mediaTypesOf } from "../capabilities.ts";
import { truncated } from "../failures/failures.ts";
import { SetupError } from "../failures/provider-error.ts";
import { openHistory } from "../history/history.ts";
import type {
  ChatModel,
  ChatModelEvent,
  ChatModelRequest,
  Provider,
  ProviderSetup,
  ProviderTimes,
} from "../provider.ts";
import { type RetryClock, realRetryClock, retryDelay } from "../upstream/retry.ts";
import { type BedrockPackage, createBedrockClient } from "./client.ts";
import { BedrockConnection } from "./connection.ts";
import { bedrockEffort } from "./effort.ts";
import { LABEL, toBedrockError } from "./failures.ts";
import { BedrockReader } from "./reader.ts";
import { type BedrockModelSettings, converseInput, splitExtra } from "./request.ts";

/** A model on AWS Bedrock, over ConverseStream: the one API there that all models with tools speak. */
export async function createBedrock(
  { model, env, times, settings, loadPackage }: ProviderSetup,
  clock: RetryClock = realRetryClock,
): Promise<Provider> {
  if ((settings.temperature ?? 0) > 1) {
    throw new SetupError("temperature must be a number from 0 to 1 for AWS Bedrock.");
  }
  const [effort, extra] = [bedrockEffort(model, settings), splitExtra(settings.extraBody)];
  const request = { model, settings, effort, extra };
  // What the loader gives for this name.
  const sdk = (await loadPackage("@aws-sdk/client-bedrock-runtime")) as BedrockPackage;
  const client = await createBedrockClient(sdk, { model, env });
  const chat = new BedrockModel({ sdk, client, request, times, clock });
  return {
    id: "bedrock",
    label: LABEL,
    stateKind: "conversation_history",
    mediaTypes: mediaTypesOf("bedrock"),
    open: (setup) => openHistory(chat, setup),
  };
}

interface BedrockModelOptions {
  sdk: BedrockPackage;
  client: BedrockRuntimeClient;
  request: BedrockModelSettings;
  times: ProviderTimes;
  clock: RetryClock;
}

class BedrockModel implements ChatModel {
  readonly #options: BedrockModelOptions;

  constructor(options: BedrockModelOptions) {
    this.#options = options;
  }

  async *stream(
    request: ChatModelRequest,
    signal: AbortSignal,
  ): AsyncGenerator<ChatModelEvent, void> {
    const reader = new BedrockReader();
    const { connection, first } = await this.#open(request, signal);
    try {
      let event = first;
      while (event !== undefined) {
        for (const said of reader.read(event)) yield said;
        if (reader.complete) break;
        event = await connection.read();
      }
    } catch (error) {
      signal.throwIfAborted();
      throw toBedrockError(error, true);
    } finally {
      connection.close();
    }
    signal.throwIfAborted();
    if (!reader.finished) throw truncated(LABEL);
    for (const event of reader.end(callIds(request.messages))) yield event;
  }

  /** Tries until a first event is there: up to then another try cannot be noticed. */
  async #open(
    request: ChatModelRequest,
    signal: AbortSignal,
  ): Promise<{ connection: BedrockConnection; first: ConverseStreamOutput | undefined }> {
    const { sdk, client, request: settings, times, clock } = this.#options;
    const input = converseInput(request, settings);
    const deadline = performance.now() + times.firstChunk;
    for (let tried = 1; ; tried++) {
      signal.throwIfAborted();
      const connection = new BedrockConnection(times, deadline, signal);
      try {
        await connection.start(client, new sdk.ConverseStreamCommand(input));
        return { connection, first: await connection.read() };
      } catch (error) {
        connection.close();
        signal.throwIfAborted();
        const failure = toBedrockError(error);
        const delay = retryDelay(failure, tried, clock.random);
        if (delay === undefined || performance.now() + delay >= deadline) throw failure;
        await clock.wait(delay, signal);
      }
    }
  }
}

function callIds(history: readonly HistoryMessage[]): Set<string> {
  return new Set(
    history.flatMap((message) =>
      message.role === "assistant" ? (message.tool_calls ?? []).map(({ id }) => id) : [],
    ),
  );
}
