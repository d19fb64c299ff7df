/** A model on AWS Bedrock, over ConverseStream: the one API there that all models with tools take. */

import type { BedrockRuntimeClient } from "@aws-sdk/client-bedrock-runtime";
import type { ApiError } from "../../protocol/errors.ts";
import { ForgottenThinking, refusesThinking, wantsThinking } from "../claude/thinking.ts";
import { UpstreamRefusal } from "../failures.ts";
import { HistoryProvider } from "../history.ts";
import type { HistoryModel, HistoryRequest, ModelEvent, Provider, ProviderSetup } from "../provider.ts";
import { requestStream, type StreamedAnswer } from "../transport/fetch.ts";
import { type RetryClock, streamEvents } from "../transport/request.ts";
import { type BedrockPackage, createBedrockClient, signedRequest } from "./client.ts";
import { EventStreamParser } from "./event-stream.ts";
import { explainFailure, LABEL, namedRefusal } from "./failures.ts";
import { thinkingMessages } from "./messages.ts";
import { bedrockEffort } from "./models.ts";
import { BedrockReader } from "./reader.ts";
import { type BedrockModelSettings, converseInput, type RequestShape, splitExtra } from "./request.ts";

/** The row `bedrock/NAME`. @throws ConfigError */
export async function createBedrock(setup: ProviderSetup, clock?: RetryClock): Promise<Provider> {
  const { model, settings, modelSettings, loadPackage } = setup;
  const request: BedrockModelSettings = {
    model,
    settings: modelSettings,
    effort: bedrockEffort(model, modelSettings),
    extra: splitExtra(modelSettings.extraBody),
  };
  const sdk = (await loadPackage("@aws-sdk/client-bedrock-runtime")) as BedrockPackage;
  const client = await createBedrockClient(sdk, model, settings);
  return new HistoryProvider(setup, new BedrockModel({ sdk, client, request, limits: setup.limits, clock }));
}

interface BedrockModelOptions extends Pick<ProviderSetup, "limits"> {
  sdk: BedrockPackage;
  client: BedrockRuntimeClient;
  request: BedrockModelSettings;
  clock: RetryClock | undefined;
}

class BedrockModel implements HistoryModel {
  readonly #options: BedrockModelOptions;
  readonly #forgotten = new ForgottenThinking();

  constructor(options: BedrockModelOptions) {
    this.#options = options;
  }

  stream(request: HistoryRequest, signal: AbortSignal): AsyncIterable<ModelEvent[]> {
    const { limits, clock } = this.#options;
    const shape: RequestShape = { isForgotten: (message) => this.#forgotten.has(message), thinks: true };
    const sent = {
      label: LABEL,
      limits,
      clock,
      onRequestId: request.onRequestId,
      send: (own: AbortSignal) => this.#send(request, shape, own),
      explain: explainFailure,
      decoder: () => {
        const parser = new EventStreamParser();
        return (packet: Buffer) => parser.push(packet);
      },
      adapt: ({ cause }: ApiError) => {
        if (!(cause instanceof UpstreamRefusal) || cause.status !== 400) return false;
        const { text } = cause.detail;
        if (refusesThinking(text) && this.#forgotten.forget(thinkingMessages(request.messages))) return true;
        if (!wantsThinking(text) || !shape.thinks) return false;
        shape.thinks = false;
        return true;
      },
    };
    return streamEvents(sent, new BedrockReader(request), signal);
  }

  async #send(request: HistoryRequest, shape: RequestShape, signal: AbortSignal): Promise<StreamedAnswer> {
    const { sdk, client, request: settings } = this.#options;
    const { url, ...signed } = await signedRequest(sdk, client, converseInput(request, settings, shape));
    try {
      return await requestStream(url, { ...signed, signal }, "application/vnd.amazon.eventstream");
    } catch (error) {
      throw error instanceof UpstreamRefusal ? namedRefusal(error) : error;
    }
  }
}
