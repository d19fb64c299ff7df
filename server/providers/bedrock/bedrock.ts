import type { BedrockRuntimeClient } from "@aws-sdk/client-bedrock-runtime";
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
import type { UpstreamLine } from "../upstream/line.ts";
import { type RetryClock, realRetryClock } from "../upstream/retry.ts";
import { tryToOpen } from "../upstream/tries.ts";
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
    const { sdk, client, request: settings, times, clock } = this.#options;
    const reader = new BedrockReader();
    const input = converseInput(request, settings);
    const open = async (own: UpstreamLine) => {
      const connection = new BedrockConnection(own);
      await connection.start(client, new sdk.ConverseStreamCommand(input));
      return { connection, first: await connection.read() };
    };
    const tries = { times, clock, explain: toBedrockError, adapt: () => false };
    const { line, stream } = await tryToOpen(open, tries, signal);
    try {
      let event = stream.first;
      while (event !== undefined) {
        for (const said of reader.read(event)) yield said;
        if (reader.complete) break;
        event = await stream.connection.read();
      }
    } catch (error) {
      signal.throwIfAborted();
      throw toBedrockError(error, true);
    } finally {
      line.close();
    }
    signal.throwIfAborted();
    if (!reader.finished) throw truncated(LABEL);
    for (const event of reader.end(callIds(request.messages))) yield event;
  }
}

function callIds(history: readonly HistoryMessage[]): Set<string> {
  return new Set(
    history.flatMap((message) =>
      message.role === "assistant" ? (message.tool_calls ?? []).map(({ id }) => id) : [],
    ),
  );
}
