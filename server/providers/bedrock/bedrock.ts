import type { BedrockRuntimeClient, ConverseStreamOutput } from "@aws-sdk/client-bedrock-runtime";
import { ForgottenThinking } from "../anthropic/forgotten-thinking.ts";
import { refusesThinking, wantsThinking } from "../anthropic/refusal.ts";
import { mediaTypesOf } from "../capabilities.ts";
import { truncated } from "../failures/failures.ts";
import { type ProviderError, SetupError } from "../failures/provider-error.ts";
import { callIds } from "../history/calls.ts";
import { HistoryProvider } from "../history/history.ts";
import type {
  ChatModel,
  ChatModelEvent,
  ChatModelRequest,
  Provider,
  ProviderSetup,
  ProviderTimes,
  Tell,
} from "../provider.ts";
import type { UpstreamLine } from "../upstream/line.ts";
import { type RetryClock, realRetryClock } from "../upstream/retry.ts";
import { tryToOpen } from "../upstream/tries.ts";
import { type BedrockPackage, createBedrockClient } from "./client.ts";
import { BedrockConnection } from "./connection.ts";
import { bedrockEffort } from "./effort.ts";
import { LABEL, toBedrockError } from "./failures.ts";
import { thinkingMessages } from "./messages.ts";
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
  return new HistoryProvider({ id: "bedrock", label: LABEL, mediaTypes: mediaTypesOf("bedrock") }, chat);
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
  readonly #forgotten = new ForgottenThinking();

  constructor(options: BedrockModelOptions) {
    this.#options = options;
  }

  async stream(request: ChatModelRequest, signal: AbortSignal, tell: Tell<ChatModelEvent>): Promise<void> {
    const reader = new BedrockReader();
    const { line, stream } = await this.#open(request, signal);
    /** What the next event says; `undefined` where there is none. */
    const read = async (next: Promise<ConverseStreamOutput | undefined>) => {
      try {
        const event = await next;
        return event && reader.read(event);
      } catch (error) {
        signal.throwIfAborted();
        throw toBedrockError(error, true);
      }
    };
    try {
      let said = await read(Promise.resolve(stream.first));
      while (said !== undefined) {
        if (said.length > 0) await tell(said);
        said = reader.complete ? undefined : await read(stream.connection.read());
      }
    } finally {
      line.close();
    }
    signal.throwIfAborted();
    if (!reader.finished) throw truncated(LABEL);
    await tell(reader.end(callIds(request.messages)));
  }

  #open(request: ChatModelRequest, signal: AbortSignal) {
    const { sdk, client, request: settings, times, clock } = this.#options;
    const shape = { forgotten: this.#forgotten, thinks: true };
    let input = converseInput(request, settings, shape);
    const open = async (line: UpstreamLine) => {
      const connection = new BedrockConnection(line, request.onAnswer);
      await connection.start(client, new sdk.ConverseStreamCommand(input));
      return { connection, first: await connection.read() };
    };
    const adapt = ({ cause }: ProviderError) => {
      const thinking = thinkingMessages(request.messages);
      if (refusesThinking(cause) && this.#forgotten.forget(thinking)) {
        input = converseInput(request, settings, shape);
        return true;
      }
      if (!wantsThinking(cause) || !shape.thinks) return false;
      shape.thinks = false;
      input = converseInput(request, settings, shape);
      return true;
    };
    return tryToOpen(open, { times, clock, explain: toBedrockError, adapt }, signal);
  }
}
