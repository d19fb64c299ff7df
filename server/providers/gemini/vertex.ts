import type { GoogleAuth } from "google-auth-library";
import { requireSetting, SETTINGS } from "../../config/settings.ts";
import { ConfigError } from "../../errors.ts";
import type { ApiError } from "../../protocol/errors.ts";
import { createChatCompletions } from "../chat-completions/model.ts";
import { providerError, UpstreamRefusal } from "../failures.ts";
import type { Provider, ProviderSetup } from "../provider.ts";
import { geminiDialect } from "./gemini.ts";

/**
 * Vertex AI puts thoughts in tags only if the request names the tag, and then does not flag them. No model writes this
 * name by itself.
 */
const THOUGHT_TAG = "parley_thought";

/** Gemini on Google Cloud, through Vertex AI's OpenAI-compatible form. */
export async function createVertex(setup: ProviderSetup): Promise<Provider> {
  const { label, settings } = setup;
  // The API names models by their publisher.
  const model = setup.model.includes("/") ? setup.model : `google/${setup.model}`;
  return createChatCompletions({
    ...setup,
    model,
    baseURL: settings.vertexUrl || vertexEndpoint(setup),
    apiKey: settings.vertexToken || (await googleToken(setup)),
    dialect: geminiDialect({
      label,
      model,
      thinkTags: { names: [THOUGHT_TAG], anywhere: true, mayLackOpening: false },
      thoughtTag: THOUGHT_TAG,
      explain: (cause) => credentialFailure(label, cause),
    }),
  });
}

/** The base URL for the project and location that the settings name. @throws ConfigError without them */
export function vertexEndpoint(setup: Pick<ProviderSetup, "id" | "model" | "settings">): string {
  const project = requireName(setup, "googleProject", "the id of your Google Cloud project");
  const location = requireName(setup, "googleLocation", '"global" or a region such as "europe-west1"');
  return `https://${host(location)}/v1/projects/${project}/locations/${location}/endpoints/openapi`;
}

function host(location: string): string {
  if (location === "global") return "aiplatform.googleapis.com";
  // The two multi-regions have hosts of their own.
  if (location === "us" || location === "eu") return `aiplatform.${location}.rep.googleapis.com`;
  return `${location}-aiplatform.googleapis.com`;
}

/** Allows only the characters of a name, because the value becomes part of an address. */
function requireName(
  setup: Pick<ProviderSetup, "id" | "model" | "settings">,
  key: "googleProject" | "googleLocation",
  example: string,
): string {
  const value = requireSetting(setup, key, example);
  // Old project ids begin with a domain: "example.com:project".
  if (/^[a-z0-9][a-z0-9.:-]*$/.test(value)) return value;
  throw new ConfigError(`${SETTINGS[key].name} must be lower-case letters, digits and hyphens.`);
}

function credentialFailure(label: string, cause: unknown): ApiError | undefined {
  if (!(cause instanceof UpstreamRefusal) || ![401, 403].includes(cause.status)) return undefined;
  const detail =
    cause.status === 401
      ? `${label} refused the Google Cloud credentials of this server: they are wrong or expired.`
      : `${label} refused this server: its Google Cloud account needs the role "Vertex AI User", and the project the Vertex AI API.`;
  return providerError("provider_auth", detail, { cause });
}

const SCOPE = "https://www.googleapis.com/auth/cloud-platform";

/**
 * Access tokens from Google's application default credentials: a service account's key, a workload identity, or the
 * result of `gcloud auth application-default login`. The package caches a token and renews it in time.
 */
async function googleToken({ label, settings, loadPackage }: ProviderSetup): Promise<() => Promise<string>> {
  const google = (await loadPackage("google-auth-library")) as { GoogleAuth: typeof GoogleAuth };
  // The package reads only the process's environment, but the setting may come from a `.env` file.
  const keyFilename = settings.googleCredentials;
  const auth = new google.GoogleAuth({ scopes: SCOPE, ...(keyFilename === "" ? {} : { keyFilename }) });
  return async () => {
    try {
      const token = await auth.getAccessToken();
      if (token) return token;
    } catch (cause) {
      throw noCredentials(label, cause);
    }
    throw noCredentials(label, undefined);
  };
}

function noCredentials(label: string, cause: unknown): ApiError {
  const detail = `This server has no working Google Cloud credentials for ${label}: run "gcloud auth application-default login" where it runs, or set GOOGLE_APPLICATION_CREDENTIALS or VERTEX_ACCESS_TOKEN.`;
  return providerError("provider_auth", detail, { cause });
}
