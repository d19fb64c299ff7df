/** The AWS SDK, which finds region and credentials, and builds and signs the requests; `transport/` sends them. */

import type {
  BedrockRuntimeClient,
  BedrockRuntimeClientConfig,
  ConverseStreamCommandInput,
} from "@aws-sdk/client-bedrock-runtime";
import type { Settings } from "../../config/settings.ts";
import { ConfigError } from "../../errors.ts";
import type { Sending, StreamRequest } from "../transport/fetch.ts";

export type BedrockPackage = typeof import("@aws-sdk/client-bedrock-runtime");

/**
 * Signs requests with the region and the credentials that were found. AWS's own chain supplies what the environment does not
 * set: profiles, single sign-on, web identity, container and instance roles. @throws ConfigError that names the missing setting
 */
export async function createBedrockClient(
  sdk: BedrockPackage,
  model: string,
  settings: Settings,
): Promise<SignRequest> {
  const client = withoutVersionWarning(() => new sdk.BedrockRuntimeClient(clientConfig(settings)));
  const sign: SignRequest = (input) => signedRequest(sdk, client, input);
  try {
    await client.config.region();
  } catch (cause) {
    const problem = `model "bedrock/${model}" needs AWS_REGION: set it to the region that serves the model, such as us-east-1.`;
    throw new ConfigError(problem, { cause });
  }
  if (settings.awsBearerToken !== "") return sign;
  try {
    await client.config.credentials();
  } catch (cause) {
    const problem = `model "bedrock/${model}" needs AWS credentials: set AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE.`;
    throw new ConfigError(problem, { cause });
  }
  return sign;
}

function clientConfig(settings: Settings): BedrockRuntimeClientConfig {
  const { bedrockUrl, awsRegion, awsProfile, awsBearerToken } = settings;
  return {
    ...(bedrockUrl === "" ? {} : { endpoint: bedrockUrl }),
    ...(awsRegion === "" ? {} : { region: awsRegion }),
    ...(awsProfile === "" ? accessKey(settings) : { profile: awsProfile }),
    ...(awsBearerToken === "" ? {} : { token: { token: awsBearerToken }, authSchemePreference: ["httpBearerAuth"] }),
    // Never used, but without these values the SDK reads them from AWS's shared settings.
    maxAttempts: 1,
    retryMode: "standard",
  };
}

function accessKey(settings: Settings): Pick<BedrockRuntimeClientConfig, "credentials"> {
  const { awsAccessKeyId: accessKeyId, awsSecretAccessKey: secretAccessKey, awsSessionToken: sessionToken } = settings;
  if (accessKeyId === "" || secretAccessKey === "") return {};
  return { credentials: { accessKeyId, secretAccessKey, ...(sessionToken === "" ? {} : { sessionToken }) } };
}

/** A request as the SDK builds and signs it. */
type SignedRequest = Omit<StreamRequest, keyof Sending> & { url: string };

/** Finding the credentials may take long. */
export type SignRequest = (input: ConverseStreamCommandInput) => Promise<SignedRequest>;

async function signedRequest(
  { ConverseStreamCommand: Command }: BedrockPackage,
  client: BedrockRuntimeClient,
  input: ConverseStreamCommandInput,
): Promise<SignedRequest> {
  const command = new Command(input);
  let signed: SignedRequest | undefined;
  command.middlewareStack.add(
    (next) => (args) => {
      const request = args.request as BuiltRequest;
      // The SDK expects to send by HTTP/2, where `:authority` replaces `host`.
      const { ":authority": host, ...headers } = request.headers;
      if (host !== undefined) request.headers = { ...headers, host };
      return next(args);
    },
    { step: "build", priority: "low", name: "signHost" },
  );
  // Runs after the signing, and replaces sending the request and reading its answer.
  command.middlewareStack.add(
    () =>
      async ({ request }) => {
        const { protocol, hostname, port, path, method, headers, body } = request as BuiltRequest;
        const url = `${protocol}//${hostname}${port === undefined ? "" : `:${port}`}${path}`;
        signed = { url, method, headers, body };
        return { output: { $metadata: {} }, response: undefined } as never;
      },
    { step: "deserialize", priority: "high", name: "takeSignedRequest" },
  );
  await client.send(command);
  if (signed === undefined) throw new Error("the SDK built no request");
  return signed;
}

interface BuiltRequest extends Omit<StreamRequest, keyof Sending> {
  protocol: string;
  hostname: string;
  port?: number;
  path: string;
}

const NO_WARNING = "AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED";

/**
 * The first client of a process warns of Node versions that later releases of the package will not support, which users
 * of Parley cannot change. The variable is AWS's own, and is restored at once.
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
