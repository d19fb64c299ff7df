import { mediaTypesOf } from "../capabilities.ts";
import { createChatCompletions } from "../chat/create.ts";
import { ProviderError, SetupError } from "../failures/provider-error.ts";
import type { Provider, ProviderSetup } from "../provider.ts";
import { readBaseUrl, readSetting, readToken } from "../settings.ts";
import { UpstreamRefusal } from "../upstream/refusal.ts";
import { geminiDialect } from "./dialect.ts";
import { googleToken } from "./vertex-token.ts";

const LABEL = "Vertex AI";

/**
 * Here the server puts thoughts in tags only when it is told a name for them, and then flags nothing. A name
 * that no model writes by itself.
 */
const THOUGHT_TAG = "parley_thought";

/** Gemini on Google Cloud, through Vertex AI's OpenAI-compatible form. */
export async function createVertex(setup: ProviderSetup): Promise<Provider> {
  const { env, times, settings } = setup;
  const baseUrl = readBaseUrl(env, "VERTEX_BASE_URL") ?? vertexEndpoint(setup);
  // The API names models by their publisher.
  const model = setup.model.includes("/") ? setup.model : `google/${setup.model}`;
  return createChatCompletions({
    id: "vertex",
    label: LABEL,
    model,
    baseUrl,
    apiKey: readToken(env, "VERTEX_ACCESS_TOKEN") ?? (await googleToken(setup, LABEL)),
    mediaTypes: mediaTypesOf("vertex"),
    times,
    settings,
    dialect: geminiDialect({
      label: LABEL,
      model,
      thinkTags: { names: [THOUGHT_TAG], anywhere: true },
      thoughtTag: THOUGHT_TAG,
      explain: credentialFailure,
    }),
  });
}

/** The base URL for the project and location that the settings name. @throws SetupError without them */
export function vertexEndpoint({ model, env }: Pick<ProviderSetup, "model" | "env">): string {
  const project = readName(env, "GOOGLE_CLOUD_PROJECT");
  const location = readName(env, "GOOGLE_CLOUD_LOCATION");
  if (project === undefined || location === undefined) {
    const missing = project === undefined ? "GOOGLE_CLOUD_PROJECT" : "GOOGLE_CLOUD_LOCATION";
    const example =
      project === undefined ? "the id of your Google Cloud project" : '"global" or a region such as "europe-west1"';
    throw new SetupError(`model "vertex/${model}" needs ${missing}: set it to ${example}.`);
  }
  return `https://${host(location)}/v1/projects/${project}/locations/${location}/endpoints/openapi`;
}

function host(location: string): string {
  if (location === "global") return "aiplatform.googleapis.com";
  // The two multi-regions have hosts of their own.
  if (location === "us" || location === "eu") return `aiplatform.${location}.rep.googleapis.com`;
  return `${location}-aiplatform.googleapis.com`;
}

/** Becomes part of an address, so it can be nothing but a name. */
function readName(env: ProviderSetup["env"], name: string): string | undefined {
  const value = readSetting(env, name);
  // Old project ids begin with a domain: "example.com:project".
  if (value !== undefined && !/^[a-z0-9][a-z0-9.:-]*$/.test(value)) {
    throw new SetupError(`${name} must be lower-case letters, digits and hyphens.`);
  }
  return value;
}

function credentialFailure(cause: unknown): ProviderError | undefined {
  if (!(cause instanceof UpstreamRefusal) || ![401, 403].includes(cause.status)) return undefined;
  const message =
    cause.status === 401
      ? `${LABEL} refused the Google Cloud credentials of this server: they are wrong or expired.`
      : `${LABEL} refused this server: its Google Cloud account needs the role "Vertex AI User", and the project the Vertex AI API.`;
  return new ProviderError("provider_auth", message, { cause });
}
