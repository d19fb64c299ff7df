import type { GoogleAuth } from "google-auth-library";
import { ProviderError } from "../failures/provider-error.ts";
import type { ProviderSetup } from "../provider.ts";
import { readSetting } from "../settings.ts";

type GoogleAuthPackage = { GoogleAuth: typeof GoogleAuth };

const SCOPE = "https://www.googleapis.com/auth/cloud-platform";

/**
 * Access tokens of Google's application default credentials: a service account's key, a workload's identity,
 * or what `gcloud auth application-default login` left. The package keeps a token and renews it in time.
 */
export async function googleToken({ env, loadPackage }: ProviderSetup, label: string): Promise<() => Promise<string>> {
  const { GoogleAuth } = (await loadPackage("google-auth-library")) as GoogleAuthPackage;
  // The package looks into the process's environment only, and the setting may be the project's.
  const keyFilename = readSetting(env, "GOOGLE_APPLICATION_CREDENTIALS");
  const auth = new GoogleAuth({ scopes: SCOPE, ...(keyFilename && { keyFilename }) });
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

function noCredentials(label: string, cause: unknown): ProviderError {
  const message = `This server has no working Google Cloud credentials for ${label}: run "gcloud auth application-default login" where it runs, or set GOOGLE_APPLICATION_CREDENTIALS or VERTEX_ACCESS_TOKEN.`;
  return new ProviderError("provider_auth", message, { cause });
}
