import type { BedrockRuntimeClient, BedrockRuntimeClientConfig } from "@aws-sdk/client-bedrock-runtime";
import { SetupError } from "../failures/provider-error.ts";
import type { ProviderSetup } from "../provider.ts";
import { readBaseUrl, readSetting, readToken } from "../settings.ts";

/** The AWS SDK's package; it is loaded only when a model of Bedrock is served. */
export type BedrockPackage = typeof import("@aws-sdk/client-bedrock-runtime");

type Env = ProviderSetup["env"];

/**
 * A client with its region and its credentials found. What is not set in the environment comes from AWS's
 * own chain: profiles, single sign-on, web identity, container and instance roles.
 * @throws SetupError that names the missing setting
 */
export async function createBedrockClient(
  { BedrockRuntimeClient: Client }: BedrockPackage,
  { model, env }: Pick<ProviderSetup, "model" | "env">,
): Promise<BedrockRuntimeClient> {
  const client = withoutVersionWarning(() => new Client(clientConfig(env)));
  const who = `model "bedrock/${model}" needs`;
  try {
    await client.config.region();
  } catch (cause) {
    const message = `${who} AWS_REGION: set it to the region that serves the model, such as us-east-1.`;
    throw new SetupError(message, { cause });
  }
  if (readToken(env, "AWS_BEARER_TOKEN_BEDROCK") !== undefined) return client;
  try {
    await client.config.credentials();
  } catch (cause) {
    const message = `${who} AWS credentials: set AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE.`;
    throw new SetupError(message, { cause });
  }
  return client;
}

function clientConfig(env: Env): BedrockRuntimeClientConfig {
  const endpoint = readBaseUrl(env, "BEDROCK_BASE_URL");
  const region = readToken(env, "AWS_REGION");
  const profile = readSetting(env, "AWS_PROFILE");
  const token = readToken(env, "AWS_BEARER_TOKEN_BEDROCK");
  const credentials = profile === undefined ? keysOf(env) : undefined;
  return {
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(region === undefined ? {} : { region }),
    ...(profile === undefined ? {} : { profile }),
    ...(credentials === undefined ? {} : { credentials }),
    ...(token === undefined ? {} : { token: { token }, authSchemePreference: ["httpBearerAuth"] }),
    // Retries are ours: the package's would not know that an answer has begun.
    maxAttempts: 1,
    retryMode: "standard",
  };
}

function keysOf(env: Env) {
  const accessKeyId = readToken(env, "AWS_ACCESS_KEY_ID");
  const secretAccessKey = readToken(env, "AWS_SECRET_ACCESS_KEY");
  if (accessKeyId === undefined || secretAccessKey === undefined) return undefined;
  const sessionToken = readToken(env, "AWS_SESSION_TOKEN");
  return { accessKeyId, secretAccessKey, ...(sessionToken === undefined ? {} : { sessionToken }) };
}

const NO_WARNING = "AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED";

/**
 * The first client of a process warns of Node versions that later releases of the package will not run on.
 * That is for Parley to follow, not for its users; the switch is AWS's own, and it is set back at once.
 */
function withoutVersionWarning<Value>(construct: () => Value): Value {
  const before = process.env[NO_WARNING];
  process.env[NO_WARNING] = "true";
  try {
    return construct();
  } finally {
    if (before === undefined) delete process.env[NO_WARNING];
    else process.env[NO_WARNING] = before;
  }
}
