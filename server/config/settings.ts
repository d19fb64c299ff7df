/**
 * Every setting of the server. Parsing, the reload on SIGHUP and the tables of docs/settings.md come from these tables;
 * after a change, update the page: npm run docs
 */

import { BlockList } from "node:net";
import { ConfigError } from "../errors.ts";
import {
  addressRanges,
  basePath,
  baseUrl,
  choice,
  emptySentence,
  hosts,
  integer,
  type Kind,
  keys,
  onOff,
  origins,
  path,
  plainText,
  seconds,
  secrets,
  token,
  workers,
} from "./kinds.ts";
import { type MemoryDefaults, memoryDefaults } from "./memory.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

export interface Setting<T> {
  /** The environment variable. */
  name: string;
  kind: Kind<T>;
  fallback: T | ((memory: MemoryDefaults) => T);
  /** Whether SIGHUP applies a new value. */
  live: boolean;
  /** The sentence of docs/settings.md, in Markdown. */
  text: string;
  /** Its default on that page, if that is more than the value. */
  shown: string | undefined;
}

function rows(live: boolean) {
  return <T>(name: string, kind: Kind<T>, fallback: Setting<T>["fallback"]) => ({
    means: (text: string, shown?: string): Setting<T> => ({ name, kind, fallback, live, text, shown }),
  });
}

/** A setting that takes effect at the next start. */
const fixed = rows(false);

/** A setting that SIGHUP reloads. Read its value again for each decision: `settings.ratePerKey` changes in place. */
const live = rows(true);

const serving = {
  port: fixed("PORT", integer(0, 65_535), 8080).means("Port to listen on."),
  host: fixed("HOST", plainText, "127.0.0.1").means("Address to listen on. `0.0.0.0` lets other machines connect."),
  basePath: fixed("PARLEY_BASE_PATH", basePath, "").means(
    "Path that all addresses begin with, such as `/support`. See [Below a path](deploying.md#below-a-path).",
    "none",
  ),
  envFile: fixed("PARLEY_ENV_FILE", path, "").means(
    "Path of another file like `.env`. It overrides the project's `.env`; variables of the environment override both.",
  ),
  openaiApi: fixed("PARLEY_OPENAI_API", onOff, false).means(
    "`on`: OpenAI's clients get the agent as a model, with a `PARLEY_API_KEY`. See [OpenAI's clients](api.md#openais-clients).",
    "`off`",
  ),
  mcp: fixed("PARLEY_MCP", onOff, false).means(
    "`on`: MCP clients get the agent as a tool, with a `PARLEY_API_KEY`. See [The agent as a tool](api.md#the-agent-as-a-tool-mcp).",
    "`off`",
  ),
  docs: fixed("PARLEY_DOCS", onOff, true).means(
    "`off`: no [`GET /openapi.json`](api.md#get-openapijson), which describes the HTTP interface.",
    "`on`",
  ),
  drainSeconds: fixed("PARLEY_DRAIN_SECONDS", seconds(0), 30).means(
    "How long running answers may continue at shutdown; 0 ends them at once.",
  ),
};

const access = {
  apiKeys: live("PARLEY_API_KEY", keys, []).means("Keys of your programs."),
  chatKeys: live("PARLEY_CHAT_KEY", keys, []).means("Keys of people on the chat page."),
  widgetKeys: live("PARLEY_WIDGET_KEY", keys, []).means("Keys of the element on other sites."),
  allowedOrigins: live("PARLEY_ALLOWED_ORIGINS", origins, []).means(
    "Sites and apps whose pages may use the server.",
    "see [Origins](api.md#origins)",
  ),
  imageHosts: live("PARLEY_IMAGE_HOSTS", hosts, []).means(
    "Servers, such as `images.example.com`, whose pictures in answers the page at `/` may load over https, after a click.",
  ),
  stateSecrets: live("PARLEY_STATE_SECRET", secrets, []).means(
    "Signs the conversation's state, so that clients cannot change it. The first secret signs, all of them verify.",
  ),
  trustedProxies: live("PARLEY_TRUSTED_PROXIES", addressRanges, new BlockList()).means(
    "Addresses and ranges (`10.0.0.0/8, fd00::/8`) of your reverse proxies. Only their header is trusted for the client's address. See [Overload](api.md#overload).",
    "none",
  ),
  forwardedHeader: live("PARLEY_FORWARDED_HEADER", choice("x-forwarded-for", "forwarded"), "x-forwarded-for").means(
    "The header with the client's address, or `forwarded` (RFC 7239). Only this one is read.",
  ),
};

const messages = {
  maxBodyBytes: fixed("PARLEY_MAX_BODY_BYTES", integer(1), ({ bodyBytes }) => bodyBytes).means(
    "Bytes of a body or socket message, with its files and state (64 MiB). The default is never more than a tenth of the [heap](deploying.md#memory).",
  ),
  maxAttachments: live("PARLEY_MAX_ATTACHMENTS", integer(), 10).means("Files per message; 0 allows none."),
  maxMessageChars: live("PARLEY_MAX_MESSAGE_CHARS", integer(1), 1_000_000).means(
    "Characters (UTF-16 units) of a message's text.",
  ),
  maxHistoryItems: live("PARLEY_MAX_HISTORY_ITEMS", integer(1), 2000).means(
    "Messages of a `conversation_history`, with the parts and tool calls in them.",
  ),
  maxHistoryBytes: live("PARLEY_MAX_HISTORY_BYTES", integer(1), 16 * 1024 * 1024).means(
    "Bytes of text and base64 in a `conversation_history` (16 MiB).",
  ),
  // The functions that read a message walk it recursively, so its depth has a bound of its own.
  maxJsonDepth: live("PARLEY_MAX_JSON_DEPTH", integer(8, 512), 64).means(
    "Nesting of arrays and objects in a message, 8 to 512.",
  ),
  maxToolCalls: live("PARLEY_MAX_TOOL_CALLS", integer(1), 16).means(
    "Tool calls per model turn. The model is informed that further calls were not carried out. An agent with `run` may ask for as many approvals in one answer.",
  ),
  maxToolOutputChars: live("PARLEY_MAX_TOOL_OUTPUT_CHARS", integer(1), 100_000).means(
    "Characters of a tool's output that are sent to model and client.",
  ),
  approvalSeconds: live("PARLEY_APPROVAL_SECONDS", seconds(), 3600).means(
    "How long a tool call waits for a person's [approval](approvals.md).",
  ),
};

const rates = {
  ratePerKey: live("PARLEY_RATE_PER_KEY", integer(), 600).means("Chat messages with one key."),
  ratePerAddress: live("PARLEY_RATE_PER_ADDRESS", integer(), 60).means("Chat messages from one address."),
  widgetRatePerAddress: live("PARLEY_WIDGET_RATE_PER_ADDRESS", integer(), 20).means(
    "Chat messages from one address with a widget key, instead of `PARLEY_RATE_PER_ADDRESS`.",
  ),
  ratePerUser: live("PARLEY_RATE_PER_USER", integer(), 60).means("Chat messages of one [user](users.md)."),
  ratePerSocket: live("PARLEY_RATE_PER_SOCKET", integer(), 120).means("Messages of any kind on one socket."),
  wrongKeysPerAddress: live("PARLEY_WRONG_KEYS_PER_ADDRESS", integer(), 20).means(
    "Unknown keys per minute from one address, or from all loopback addresses together. Beyond it, every key from there is refused.",
  ),
};

const atOnce = {
  maxRuns: live("PARLEY_MAX_RUNS", integer(), 256).means("Answers that run at once in one process."),
  maxRunsPerKey: live("PARLEY_MAX_RUNS_PER_KEY", integer(), 128).means("Answers that run at once for one key."),
  maxRunsPerAddress: live("PARLEY_MAX_RUNS_PER_ADDRESS", integer(), 32).means(
    "Answers that run at once for one address.",
  ),
  widgetMaxRunsPerAddress: live("PARLEY_WIDGET_MAX_RUNS_PER_ADDRESS", integer(), 8).means(
    "Answers that run at once for one address with a widget key, instead of `PARLEY_MAX_RUNS_PER_ADDRESS`.",
  ),
  maxRunsPerUser: live("PARLEY_MAX_RUNS_PER_USER", integer(), 8).means(
    "Answers that run at once for one [user](users.md).",
  ),
  maxQueuedRuns: live("PARLEY_MAX_QUEUED_RUNS", integer(), 64).means(
    "Messages that may wait in one process when `PARLEY_MAX_RUNS` answers are running there; 0: none.",
  ),
  queueSeconds: live("PARLEY_QUEUE_SECONDS", seconds(0), 5).means(
    "How long a message waits before it is refused; 0: not at all.",
  ),
  maxSockets: live("PARLEY_MAX_SOCKETS", integer(), 5000).means("Sockets that are open at once in one process."),
  maxSocketsPerAddress: live("PARLEY_MAX_SOCKETS_PER_ADDRESS", integer(), 100).means("Sockets from one address."),
  maxConnections: fixed("PARLEY_MAX_CONNECTIONS", integer(1), 10_000).means(
    "TCP connections, idle ones included. Further ones are closed at once.",
  ),
  maxLargeBodies: fixed("PARLEY_MAX_LARGE_BODIES", integer(1), 8).means(
    "Messages over 1 MiB that are received at once. Up to 64 more wait. One address may use a quarter.",
  ),
  maxRequestBytesTotal: fixed(
    "PARLEY_MAX_REQUEST_BYTES_TOTAL",
    integer(1),
    ({ requestBytesTotal }) => requestBytesTotal,
  ).means(
    "Total bytes (512 MiB) of messages over 64 KiB that a process is receiving or answering, and of the states that its sockets remember. The default is never more than a seventh of the [heap](deploying.md#memory), nor less than `PARLEY_MAX_BODY_BYTES`.",
  ),
};

const times = {
  headerSeconds: fixed("PARLEY_HEADER_SECONDS", seconds(), 20).means("For a request's headers to arrive."),
  // 64 MiB at about 5 Mbit/s.
  bodySeconds: fixed("PARLEY_BODY_SECONDS", seconds(), 120).means("For a whole request to arrive."),
  firstChunkSeconds: fixed("PARLEY_FIRST_CHUNK_SECONDS", seconds(), 60).means(
    "From a model request to the first byte of its answer, retries included.",
  ),
  idleSeconds: fixed("PARLEY_IDLE_SECONDS", seconds(), 60).means("Silence inside a model's answer."),
  runSeconds: fixed("PARLEY_RUN_SECONDS", seconds(), 600).means("A whole run."),
  keepAliveSeconds: fixed("PARLEY_KEEP_ALIVE_SECONDS", seconds(), 15).means(
    "Silence on an SSE stream before a comment.",
  ),
  sendSeconds: fixed("PARLEY_SEND_SECONDS", seconds(), 60).means(
    "How long a client may read nothing before it is disconnected.",
  ),
};

const resuming = {
  resumeSeconds: fixed("PARLEY_RESUME_SECONDS", seconds(0), 120).means(
    "How long a named run outlives its connection; 0 ends it at once.",
  ),
  resumeBytes: fixed("PARLEY_RESUME_BYTES", integer(1), 4 * 1024 * 1024).means(
    "Bytes of events that are kept per run (4 MiB).",
  ),
  resumeTotalBytes: fixed("PARLEY_RESUME_TOTAL_BYTES", integer(1), ({ resumeBytesTotal }) => resumeBytesTotal).means(
    "Bytes of events that are kept for all runs (256 MiB). The default is never more than an eighth of the [heap](deploying.md#memory).",
  ),
};

const sharing = {
  workers: fixed("PARLEY_WORKERS", workers, 1).means(
    "Number of processes that share the port; `auto` is one per processor. More than one requires `PARLEY_REDIS_URL`.",
  ),
  redisUrl: fixed("PARLEY_REDIS_URL", plainText, "").means(
    "Address of the Redis or Valkey that several processes share, such as `redis://user:password@10.0.0.5:6379/0`; `rediss://` for TLS. Needs `npm install @redis/client@6`.",
    "none",
  ),
  redisPrefix: fixed("PARLEY_REDIS_PREFIX", token, "parley:").means(
    "What every key and channel in Redis begins with. The agent's `id` follows as a hash, so two agents share nothing in any case.",
  ),
  redisRequired: fixed("PARLEY_REDIS_REQUIRED", onOff, false).means(
    "`on`: the start fails if Redis is unavailable. `off`: it only warns, and each process works alone until Redis is available.",
    "`off`",
  ),
};

const observing = {
  /** `undefined`: pretty on a terminal, else JSON. */
  log: fixed<"pretty" | "json" | "off" | undefined>("PARLEY_LOG", choice("pretty", "json", "off"), undefined).means(
    "Format of the log: `pretty`, `json` or `off`.",
    "pretty on a terminal, else JSON",
  ),
  logLevel: fixed<"error" | "warn" | "info" | "debug">(
    "PARLEY_LOG_LEVEL",
    choice("error", "warn", "info", "debug"),
    "info",
  ).means("Lowest level: `error`, `warn`, `info` or `debug`; `debug` includes the providers' own error texts."),
  metrics: fixed("PARLEY_METRICS", onOff, true).means("`off`: no `GET /metrics`.", "`on`"),
};

/** A setting of a model provider. Its text is checked by `checkSettings`, when an agent's model needs it. */
const provider = fixed<string>;

/** "" where nothing is set. */
const providers = {
  openaiKey: provider("OPENAI_API_KEY", token, "").means("Key of your OpenAI account.", "required for `openai/…`"),
  openaiUrl: provider("OPENAI_BASE_URL", baseUrl, "https://api.openai.com/v1").means(
    "Another address of the same API.",
  ),
  openaiOrganization: provider("OPENAI_ORG_ID", token, "").means("The organization that is billed."),
  openaiProject: provider("OPENAI_PROJECT_ID", token, "").means("The project that is billed."),
  anthropicKey: provider("ANTHROPIC_API_KEY", token, "").means(
    "Key of your Anthropic account.",
    "required for `anthropic/…`",
  ),
  anthropicUrl: provider("ANTHROPIC_BASE_URL", baseUrl, "https://api.anthropic.com").means(
    "Another address of the same API.",
  ),
  geminiKey: provider("GEMINI_API_KEY", token, "").means("Key from Google AI Studio.", "required for `gemini/…`"),
  geminiUrl: provider("GEMINI_BASE_URL", baseUrl, "").means("Another address of the same API.", "Google's"),
  awsRegion: provider("AWS_REGION", token, "").means(
    "Region that serves the model, for `bedrock/…`.",
    "AWS's own settings",
  ),
  awsBearerToken: provider("AWS_BEARER_TOKEN_BEDROCK", token, "").means(
    "API key of Bedrock. Without it, the next settings and AWS's default credentials are used.",
  ),
  awsProfile: provider("AWS_PROFILE", plainText, "").means("Profile of AWS's shared settings."),
  awsAccessKeyId: provider("AWS_ACCESS_KEY_ID", token, "").means("Access key."),
  awsSecretAccessKey: provider("AWS_SECRET_ACCESS_KEY", token, "").means("Its secret."),
  awsSessionToken: provider("AWS_SESSION_TOKEN", token, "").means("Token of a temporary access key."),
  bedrockUrl: provider("BEDROCK_BASE_URL", baseUrl, "").means("Another address of the same API.", "that of the region"),
  googleProject: provider("GOOGLE_CLOUD_PROJECT", plainText, "").means(
    "Project that is billed.",
    "required for `vertex/…`",
  ),
  googleLocation: provider("GOOGLE_CLOUD_LOCATION", plainText, "").means(
    "A region, or `global`.",
    "required for `vertex/…`",
  ),
  googleCredentials: provider("GOOGLE_APPLICATION_CREDENTIALS", plainText, "").means(
    "File with a service account's key.",
    "Google's own search",
  ),
  vertexToken: provider("VERTEX_ACCESS_TOKEN", token, "").means(
    "Access token to use instead of Google's credentials; it is not renewed.",
  ),
  vertexUrl: provider("VERTEX_BASE_URL", baseUrl, "").means(
    "Another address of the same API, instead of project and location.",
    "that of the location",
  ),
  ollamaUrl: provider("OLLAMA_BASE_URL", baseUrl, "http://127.0.0.1:11434/v1").means(
    "Address of Ollama, for `ollama/…`.",
  ),
  litellmUrl: provider("LITELLM_BASE_URL", baseUrl, "").means(
    "Address of the LiteLLM proxy.",
    "required for `litellm/…`",
  ),
  litellmKey: provider("LITELLM_API_KEY", token, "").means("Key of the LiteLLM proxy."),
  compatibleUrl: provider("COMPATIBLE_BASE_URL", baseUrl, "").means(
    "Address of a Chat Completions server.",
    "required for `compatible/…`",
  ),
  compatibleKey: provider("COMPATIBLE_API_KEY", token, "").means("Key of that server."),
};

export const SETTINGS = {
  ...serving,
  ...access,
  ...messages,
  ...rates,
  ...atOnce,
  ...times,
  ...resuming,
  ...sharing,
  ...observing,
  ...providers,
};

export type SettingKey = keyof typeof SETTINGS;

/** A setting of a model provider, which is used only if an agent's model needs it. */
export type ProviderSettingKey = keyof typeof providers;

/**
 * The value of every setting. There is one object for the whole server, and SIGHUP changes the live ones in place: read
 * `settings.x` where it is needed, and never copy them.
 */
export type Settings = {
  readonly [K in SettingKey]: (typeof SETTINGS)[K] extends Setting<infer T> ? T : never;
} & {
  /** Whether a key is needed to use the server. */
  readonly requiresKey: boolean;
};

/** The host if the server is not Parley's own: it is unknown where that listens. */
export const UNKNOWN_HOST = "";

/** Options of the command, which win over the environment. */
export interface Flags {
  port?: string | undefined;
  host?: string | undefined;
  workers?: string | undefined;
}

const ROWS = Object.entries(SETTINGS) as [SettingKey, Setting<unknown>][];

/** `memory` determines some defaults. @throws ConfigError that names the setting and says what is right */
export function readSettings(env: Environment, flags: Flags = {}, memory = memoryDefaults()): Settings {
  const values = ROWS.map(([key, row]) => {
    const flag = key === "port" || key === "host" || key === "workers" ? flags[key] : undefined;
    const isFlag = flag !== undefined && (key !== "host" || flag !== "");
    const given = isFlag ? { ...row, name: `--${key}` } : row;
    return [key, readSetting(given, isFlag ? flag : env[row.name], memory, key in providers)];
  });
  return completed(Object.fromEntries(values) as Settings, env);
}

function readSetting(row: Setting<unknown>, given: string | undefined, memory: MemoryDefaults, isUnchecked: boolean) {
  const text = given?.trim();
  if (text === "" && row.kind.refusesEmpty) throw new ConfigError(emptySentence(row.name));
  if (text === undefined || text === "") {
    return typeof row.fallback === "function" ? row.fallback(memory) : row.fallback;
  }
  return isUnchecked ? text : row.kind.parse(text, row.name);
}

/** Checks and values that depend on several settings. */
function completed(settings: Settings, env: Environment): Settings {
  const { maxBodyBytes, headerSeconds, bodySeconds } = settings;
  const isTotalGiven = (env.PARLEY_MAX_REQUEST_BYTES_TOTAL ?? "").trim() !== "";
  if (isTotalGiven && settings.maxRequestBytesTotal < maxBodyBytes) {
    throw new ConfigError(
      `PARLEY_MAX_REQUEST_BYTES_TOTAL must not be below PARLEY_MAX_BODY_BYTES (${maxBodyBytes}), or the largest messages would always be refused.`,
    );
  }
  if (headerSeconds > bodySeconds) {
    throw new ConfigError(
      "PARLEY_HEADER_SECONDS must not be above PARLEY_BODY_SECONDS, because both count from the start of the request.",
    );
  }
  refuseSharedSecrets(settings);
  const { apiKeys, chatKeys, widgetKeys } = settings;
  const opened = (["openaiApi", "mcp"] as const).find((door) => settings[door]);
  if (opened !== undefined && apiKeys.length === 0) {
    throw new ConfigError(
      `${SETTINGS[opened].name} is on, which needs PARLEY_API_KEY: set it to a key for your programs, such as one from openssl rand -hex 24.`,
    );
  }
  return {
    ...settings,
    maxRequestBytesTotal: Math.max(settings.maxRequestBytesTotal, maxBodyBytes),
    requiresKey: apiKeys.length + chatKeys.length + widgetKeys.length > 0,
  };
}

/** A widget key is in the source of pages: as an API key it would open everything, as a secret it would sign any state. */
function refuseSharedSecrets(settings: Settings): void {
  const owners = new Map<string, string>();
  for (const list of ["apiKeys", "chatKeys", "widgetKeys", "stateSecrets"] as const) {
    const { name } = SETTINGS[list];
    for (const secret of settings[list]) {
      const owner = owners.get(secret) ?? name;
      if (owner !== name) {
        throw new ConfigError(
          `${owner} and ${name} must not share a value, because each protects something else: make another one with openssl rand -hex 24.`,
        );
      }
      owners.set(secret, name);
    }
  }
}

/** Checks the settings of the providers that an agent's models need. @throws ConfigError */
export function checkSettings(settings: Settings, keysToCheck: readonly ProviderSettingKey[]): void {
  for (const key of keysToCheck) {
    const { name, kind } = SETTINGS[key];
    if (settings[key] !== "") kind.parse(settings[key], name);
  }
}

type TextSetting = { [K in keyof Settings]: Settings[K] extends string ? K : never }[keyof Settings];

/** The value of a setting that a model requires. `meaning` completes "set it to …". @throws ConfigError */
export function requireSetting(
  { id, model, settings }: { id: string; model: string; settings: Settings },
  key: TextSetting,
  meaning: string,
): string {
  const value = settings[key];
  if (value !== "") return value;
  const { name } = SETTINGS[key];
  const place = settings.host === UNKNOWN_HOST ? "in settings" : "in .env beside agent.ts";
  const isLike = (other: string) =>
    other.startsWith(`${name.split("_", 1)}_`) && !ROWS.some(([, row]) => row.name === other);
  // The command has added the variables of `.env` to `process.env`.
  const like = Object.keys(process.env).find(isLike);
  const hint = like === undefined ? "" : ` Parley does not read ${like}, which is set.`;
  throw new ConfigError(
    `model "${id}/${model}" needs ${name}: set it to ${meaning}, in the environment or ${place}.${hint}`,
  );
}

/** Whether SIGHUP reloads the setting of this environment variable. */
export function isLive(name: string): boolean {
  return ROWS.some(([, row]) => row.live && row.name === name);
}

export function applyLive(settings: Settings, next: Settings): void {
  const values = ROWS.filter(([, row]) => row.live).map(([key]) => [key, next[key]]);
  Object.assign(settings, Object.fromEntries(values), { requiresKey: next.requiresKey });
}

/** Whether this environment variable is read when an agent is loaded: its own ones, and the settings of providers. */
export function isOfAgent(name: string): boolean {
  return ROWS.every(([key, row]) => row.name !== name || key in providers);
}

export function applyOfProviders(settings: Settings, next: Settings): void {
  for (const key of Object.keys(providers)) Object.assign(settings, { [key]: next[key as ProviderSettingKey] });
}

/** `localhost` and addresses of this machine alone (RFC 1122, 3.2.1.3). Names below `localhost` may lead elsewhere. */
export function isLoopbackHost(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[|\]$/g, "");
  return /^localhost$|^127(?:\.\d{1,3}){3}$|^::1$/.test(name);
}

/** Whether other machines reach the server: it listens for them, or a reverse proxy passes their requests on. */
export function isPublic({ host, trustedProxies }: Settings): boolean {
  return !isLoopbackHost(host) || trustedProxies.rules.length > 0;
}

/** Whether only the operator chats: then the terminal may show questions, and the chat why a model fails. */
export function isOnlyForOperator(settings: Settings): boolean {
  return !isPublic(settings) && !settings.requiresKey;
}
