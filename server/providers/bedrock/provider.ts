/** A model on AWS Bedrock, over ConverseStream: the one API there that all models with tools take. */

import { ForgottenThinking } from "../claude/thinking.ts";
import { createProvider } from "../conversation.ts";
import { UpstreamRefusal } from "../failures.ts";
import type { Model, Provider, ProviderSetup } from "../provider.ts";
import { requestStream } from "../transport/fetch.ts";
import { streamEvents } from "../transport/request.ts";
import { type BedrockPackage, createBedrockClient, type SignRequest } from "./client.ts";
import { EventStreamParser } from "./event-stream.ts";
import { explainFailure, namedRefusal } from "./failures.ts";
import { thinkingMessages } from "./messages.ts";
import { bedrockEffort } from "./models.ts";
import { BedrockReader } from "./reader.ts";
import { type BedrockModelSettings, converseInput, splitExtra } from "./request.ts";

/** The row `bedrock/NAME`. @throws ConfigError */
export async function createBedrock(setup: ProviderSetup): Promise<Provider> {
  const { model, settings, modelSettings, loadPackage } = setup;
  const own: BedrockModelSettings = {
    model,
    settings: modelSettings,
    effort: bedrockEffort(model, modelSettings),
    extra: splitExtra(modelSettings.extraBody),
  };
  const sdk = (await loadPackage("@aws-sdk/client-bedrock-runtime")) as BedrockPackage;
  const sign = await createBedrockClient(sdk, model, settings);
  return createProvider(setup, "conversation_history", converseModel(setup, own, sign));
}

function converseModel(setup: ProviderSetup, own: BedrockModelSettings, sign: SignRequest): Model {
  const forgotten = new ForgottenThinking();
  return (request, signal) => {
    const shape = {
      isForgotten: forgotten.has.bind(forgotten),
      thinks: own.effort.fields.thinking !== undefined,
    };
    const sent = {
      setup,
      onRequestId: request.onRequestId,
      send: async (requestSignal: AbortSignal) => {
        const { url, ...signed } = await sign(converseInput(request, own, shape));
        try {
          return await requestStream(url, { ...signed, signal: requestSignal }, "application/vnd.amazon.eventstream");
        } catch (error) {
          throw error instanceof UpstreamRefusal ? namedRefusal(error) : error;
        }
      },
      explain: explainFailure,
      decoder: () => {
        const parser = new EventStreamParser();
        return (packet: Buffer) => parser.push(packet);
      },
      adapt: (refusal: UpstreamRefusal) => forgotten.adapt(refusal, thinkingMessages(request.messages), shape),
    };
    return streamEvents(sent, new BedrockReader(request), signal);
  };
}
