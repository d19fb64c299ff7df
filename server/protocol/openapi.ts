/**
 * Describes the HTTP interface of the served agent as OpenAPI 3.1. Each schema is typed by what it describes, so that `tsc`
 * reports a field that is missing here. Loaded when it is requested.
 */

import { type Attachment, type FileType, MAX_ATTACHMENT_BYTES } from "./attachments.ts";
import {
  type AgentInfo,
  type ApprovalDecision,
  type AssistantMessage,
  type ByTheme,
  type CancelResponse,
  type ChatResponse,
  type ConversationState,
  type FeedbackRequest,
  FINISH_REASONS,
  type FinishedToolCall,
  type OmittedFile,
  type OpenExchange,
  type OwnersButton,
  type OwnersPage,
  type ResultImage,
  type SocketRequest,
  type StartedToolCall,
  type ToolApproval,
  type ToolMessage,
  type Usage,
  type UserMessage,
} from "./chat.ts";
import { type ArgumentProblem, ERRORS, type ErrorBody } from "./errors.ts";
import { RUN_ID, type SocketEvent } from "./events.ts";
import type { CitedSource, ResultSource } from "./sources.ts";

/** What the document says of one server and its agent. */
export interface Described {
  /** Name of the agent. */
  readonly title: string;
  /** The version of Parley. */
  readonly version: string;
  readonly basePath: string;
  readonly requiresKey: boolean;
  /** Whether the agent knows its users. */
  readonly hasUsers: boolean;
  /** Whether each optional route is enabled. */
  readonly open: Readonly<Record<OptionalRoute, boolean>>;
  readonly limits: {
    readonly bodyBytes: number;
    readonly messageChars: number;
    readonly attachments: number;
    readonly fileTypes: readonly FileType[];
  };
}

export type OptionalRoute = "feedback" | "mcp" | "metrics" | "openai";

/** A JSON Schema of draft 2020-12, which OpenAPI 3.1 uses as it is. */
export type Schema = { readonly [keyword: string]: unknown };

/** The schema of a field that may be absent. */
class Optional {
  readonly schema: Schema;

  constructor(schema: Schema) {
    this.schema = schema;
  }
}

type FieldsOf<Shape> = {
  readonly [Field in keyof Shape as string extends Field ? never : Field]-?: object extends Pick<Shape, Field>
    ? Optional
    : Schema;
};

/** An object with the fields of `Shape`. It allows other fields, because answers get more of them over time. */
function object<Shape>(fields: FieldsOf<Shape>, more: Schema = {}): Schema {
  const entries = Object.entries<Schema | Optional>(fields);
  const required = entries.filter(([, field]) => !(field instanceof Optional)).map(([name]) => name);
  const properties = entries.map(([name, field]) => [name, field instanceof Optional ? field.schema : field]);
  return {
    type: "object",
    ...more,
    properties: Object.fromEntries(properties),
    ...(required.length === 0 ? {} : { required }),
  };
}

type SchemaName =
  | "AgentInfo"
  | "ApprovalDecision"
  | "Attachment"
  | "CancelResponse"
  | "ChatRequest"
  | "ChatResponse"
  | "CitedSource"
  | "ContentPart"
  | "ConversationState"
  | "DoneEvent"
  | "Error"
  | "ErrorCode"
  | "ErrorEvent"
  | "Event"
  | "FeedbackRequest"
  | "FinishReason"
  | "FinishedToolCall"
  | "Health"
  | "HistoryMessage"
  | "OwnersPage"
  | "Problem"
  | "SocketRequest"
  | "StartedToolCall"
  | "ToolApproval"
  | "ToolCall"
  | "Usage";

/** A schema that others refer to by its name. */
const ref = (name: SchemaName): Schema => ({ $ref: `#/components/schemas/${name}` });
const optional = (schema: Schema) => new Optional(schema);
/** A field of a request: `null` means that it is absent. */
const orNull = (schema: Schema) => new Optional({ anyOf: [schema, { type: "null" }] });
const means = (description: string, schema: Schema): Schema => ({ ...schema, description });
const text = (description: string, more: Schema = {}): Schema => ({ type: "string", description, ...more });
const list = (items: Schema, more: Schema = {}): Schema => ({ type: "array", items, ...more });
const count = (description: string): Schema => ({ type: "integer", minimum: 0, description });
const only = (value: string | true): Schema => ({ type: typeof value, const: value });
const word = (...values: readonly string[]): Schema => ({ type: "string", enum: values });
const oneOf = (...schemas: Schema[]): Schema => ({ oneOf: schemas });

const STRING = { type: "string" };
const BOOLEAN = { type: "boolean" };
const IS_OPEN = { additionalProperties: true };
const RUN = { type: "string", pattern: RUN_ID.source };
const AGENTS_OWN_NAME = "A name of the agent's own, or one by language.";
const TEXTS = { anyOf: [STRING, { type: "object", additionalProperties: STRING }] };
const TITLE = optional(means(AGENTS_OWN_NAME, TEXTS));
const PARENT = optional(text("Id of the call of which this one is a step."));

/** The fields of a source: a page by its `url`, or a `file` by its name. */
const SOURCE = {
  id: { type: "integer", minimum: 1, description: "Number of the source in its run." },
  title: text("For people.", { maxLength: 200 }),
  url: optional(text("Of http or https.", { maxLength: 2048 })),
  file: optional(text("Name of a file.")),
  quote: optional(text("The words that the answer rests on.", { maxLength: 500 })),
};

function stateSchemas() {
  const omitted = object<OmittedFile>({
    sha256: text("Digest of the bytes, in base64url."),
    mime_type: STRING,
    bytes: count("Size of the file."),
    name: optional(STRING),
  });
  const part = oneOf(
    object<{ type: "text"; text: string }>({ type: only("text"), text: STRING }),
    object<{ type: "image_url"; image_url: object; omitted?: OmittedFile }>({
      type: only("image_url"),
      image_url: object<{ url: string }>({ url: text("A `data:` URL.") }, IS_OPEN),
      omitted: optional(omitted),
    }),
    object<{ type: "file"; file: object; omitted?: OmittedFile }>({
      type: only("file"),
      file: object<{ filename: string; file_data: string }>({ filename: STRING, file_data: STRING }, IS_OPEN),
      omitted: optional(omitted),
    }),
    object<{ type: "omitted"; omitted: OmittedFile }>({ type: only("omitted"), omitted }),
  );
  const content = { anyOf: [STRING, list(ref("ContentPart"))] };
  return {
    ConversationState: object<ConversationState>(
      {
        previous_response_id: optional(text("For models whose provider keeps the conversation.")),
        conversation_history: optional(list(ref("HistoryMessage"))),
        signature: optional(STRING),
        open: optional(
          object<OpenExchange>(
            {
              messages: list(ref("HistoryMessage")),
              response: optional(STRING),
              waiting: optional({ type: "object" }),
              sealed: optional(STRING),
              signature: optional(STRING),
            },
            { description: "An exchange that has not ended. Its fields belong to the server.", ...IS_OPEN },
          ),
        ),
        conversation: optional(text("Names the conversation over all of its messages.")),
      },
      { description: "Send it back untouched with the next message. An empty object is a new conversation." },
    ),
    HistoryMessage: oneOf(
      object<UserMessage>({ role: only("user"), content }),
      object<AssistantMessage>(
        {
          role: only("assistant"),
          content: { type: ["string", "null"] },
          tool_calls: optional(list({ type: "object" })),
        },
        { description: "What the model said. Further fields go back verbatim.", ...IS_OPEN },
      ),
      object<ToolMessage>(
        {
          role: only("tool"),
          tool_call_id: STRING,
          content,
          is_error: optional(BOOLEAN),
          sources: optional(
            list(object<ResultSource>({ title: STRING, url: optional(STRING), text: optional(STRING) })),
          ),
          sealed: optional(STRING),
        },
        IS_OPEN,
      ),
    ),
    ContentPart: part,
  };
}

function toolSchemas() {
  const image = object<ResultImage>({ mime_type: STRING, data: text("Base64 of the bytes.") });
  const started = {
    id: text("Pairs the call with its result."),
    tool: STRING,
    title: TITLE,
    arguments: text("One complete JSON text."),
    status: only("running"),
    parent: PARENT,
  };
  const finished = {
    id: STRING,
    tool: STRING,
    title: TITLE,
    output: STRING,
    images: optional(list(image)),
    images_omitted: optional(count("How many more pictures the model got.")),
    status: word("completed", "failed"),
    declined: optional(only(true)),
    duration_ms: { type: "number", minimum: 0 },
    parent: PARENT,
  };
  return {
    StartedToolCall: object<StartedToolCall>(started),
    FinishedToolCall: object<FinishedToolCall>(finished),
    /** As in JSON answers: with the arguments of the call, if they are known. */
    ToolCall: oneOf(
      ref("StartedToolCall"),
      object<FinishedToolCall & { arguments?: string }>({ ...finished, arguments: optional(STRING) }),
    ),
    ToolApproval: object<ToolApproval>({
      id: STRING,
      tool: STRING,
      arguments: text("One complete JSON text. Show it: it is what the tool will get."),
      title: TITLE,
      text: text("What the person is asked."),
      danger: optional(means("The call cannot be undone.", BOOLEAN)),
      editable: optional(means("A decision may bring other arguments.", BOOLEAN)),
      schema: optional(means("JSON Schema of the arguments of an editable call.", { type: "object" })),
      question: optional(means("The agent wants words.", BOOLEAN)),
      expires_at: text("In UTC.", { format: "date-time" }),
    }),
  };
}

function answerSchemas() {
  return {
    Usage: object<Usage>({
      input_tokens: count("All input, including tokens from and into a cache."),
      output_tokens: count("All output, including thinking."),
      cached_input_tokens: optional(count("Input that came from a cache.")),
      cache_write_tokens: optional(count("Input that was written into a cache.")),
      reasoning_tokens: optional(count("Output of thinking.")),
    }),
    FinishReason: means("Why the run ended.", word(...Object.keys(FINISH_REASONS))),
    ChatResponse: object<ChatResponse>({
      response: text("The text of the model's last turn."),
      state: ref("ConversationState"),
      done: only(true),
      usage: optional(ref("Usage")),
      finish_reason: ref("FinishReason"),
      tool_calls: optional(list(ref("ToolCall"))),
      model: optional(text("The model that answered, of an agent with fallback models.")),
      approvals: optional(list(ref("ToolApproval"), { description: "The calls that wait for the person's decision." })),
      suggestions: optional(list(STRING, { maxItems: 3, description: "What the person may send next." })),
      title: optional(text("A name for the conversation.")),
      sources: optional(list(ref("CitedSource"), { description: "What the answer rests on." })),
    }),
    CitedSource: object<CitedSource>({ ...SOURCE, at: list(count("A place in the text, in UTF-16 units.")) }),
    Problem: object<ArgumentProblem>({ pointer: text("JSON pointer into the arguments."), message: STRING }),
    ErrorCode: means("Stable. More may come in later versions.", word(...Object.keys(ERRORS))),
    Error: object<ErrorBody>({
      error: object<ErrorBody["error"]>({
        code: ref("ErrorCode"),
        message: text("For people."),
        param: optional(text("JSON pointer to the wrong field of the request.")),
        problems: optional(list(ref("Problem"), { maxItems: 8 })),
        retryable: means("Whether the same request may succeed later.", BOOLEAN),
      }),
      state: optional(ref("ConversationState")),
      continue: optional(means("Tools have run: send this with the state, not the message again.", only(true))),
    }),
    AgentInfo: object<AgentInfo>({
      name: text("Name of the application."),
      agent: text("Name of the agent."),
      auth_required: means("Whether a key is needed to chat.", BOOLEAN),
      welcome: optional(text("Greeting of the empty conversation.")),
      suggestions: list(STRING, { description: "First messages to offer." }),
      disclaimer: optional(text("A line below the text field.")),
      chat: optional(means("The owner's settings of the chat, in all languages.", ref("OwnersPage"))),
      models: optional(list(STRING, { description: "The model and its fallbacks, in order." })),
      feedback: optional(means("Whether ratings of answers are taken.", only(true))),
      continue: optional(means("Whether an answer that was cut can go on.", only(true))),
      attachments: object<AgentInfo["attachments"]>({
        media_types: list(STRING),
        max_bytes: count("Of one file."),
        max_text_bytes: count("Of one text file."),
        max_count: count("Per message."),
      }),
      max_body_bytes: count("Of one message, with its state and files."),
      user: optional(text("22 characters that stand for the user.", { minLength: 22, maxLength: 22 })),
      user_name: optional(text("The user's name, where the agent's `authenticate` gives one.", { maxLength: 100 })),
      login_required: optional(means("A user has to sign in first.", only(true))),
      user_pending: optional(means("The user could not be determined: ask again later.", only(true))),
    }),
    CancelResponse: object<CancelResponse>({ status: word("cancelled", "finished") }),
    Health: object<{ status: string }>({ status: word("ok", "ready") }),
  };
}

/** The settings in an agent's `chat`. */
function ownersSchemas() {
  const byTheme = (description: string) => optional(object<ByTheme>({ light: STRING, dark: STRING }, { description }));
  const way = optional(object<{ label?: string; url?: string }>({ label: optional(TEXTS), url: optional(STRING) }));
  return {
    OwnersPage: object<OwnersPage>({
      title: optional(TEXTS),
      welcome: optional(TEXTS),
      placeholder: optional(TEXTS),
      disclaimer: optional(TEXTS),
      suggestions: optional(list(object<{ label: string; prompt: string }>({ label: TEXTS, prompt: TEXTS }))),
      links: optional(list(object<{ label: string; url: string }>({ label: TEXTS, url: STRING }))),
      signIn: way,
      signOut: way,
      accent: byTheme("Colours of the form `#rrggbb`."),
      logo: byTheme("Addresses of images, relative to the server's."),
      favicon: byTheme("Addresses of images, relative to the server's."),
      font: optional(text("A list of families, as in CSS.")),
      corners: optional(word("round", "soft", "sharp")),
      theme: optional(word("auto", "light", "dark")),
      density: optional(word("normal", "compact", "spacious")),
      conversations: optional(BOOLEAN),
      feedback: optional(BOOLEAN),
      tools: optional(word("auto", "open", "closed", "hidden", "titles")),
      thinking: optional(word("auto", "open", "closed", "hidden")),
      button: optional(
        object<OwnersButton>({
          position: optional(word("bottom-end", "bottom-start", "top-end", "top-start")),
          icon: optional(word("chat", "spark", "question")),
          size: optional(word("medium", "small", "large")),
          label: optional(TEXTS),
          preview: optional(TEXTS),
          previewAfter: optional(count("In milliseconds.")),
          autoOpen: optional(count("In milliseconds.")),
        }),
      ),
    }),
  };
}

type EventOf<Type extends SocketEvent["type"]> = Extract<SocketEvent, { type: Type }> & { id?: number };

function eventSchemas() {
  const id = optional({ type: "integer", minimum: 1, description: "Number of the event in its run." });
  const progress = object<EventOf<"tool_progress">["data"]>({
    id: STRING,
    text: text("One line.", { maxLength: 300 }),
  });
  const place = "A place in the text since the start or the last call, result or approval, in UTF-16 units.";
  const source = object<EventOf<"source">["data"]>({ ...SOURCE, at: optional(count(place)) });
  return {
    /** Sent over SSE and over WebSocket. */
    Event: oneOf(
      object<EventOf<"token">>({ type: only("token"), data: text("A piece of the answer's text."), id }),
      object<EventOf<"thinking">>({ type: only("thinking"), data: text("A piece of the model's reasoning."), id }),
      object<EventOf<"tool_call">>({ type: only("tool_call"), data: ref("StartedToolCall"), id }),
      object<EventOf<"tool_progress">>({ type: only("tool_progress"), data: progress, id }),
      object<EventOf<"tool_result">>({ type: only("tool_result"), data: ref("FinishedToolCall"), id }),
      object<EventOf<"tool_approval">>({ type: only("tool_approval"), data: ref("ToolApproval"), id }),
      object<EventOf<"source">>({ type: only("source"), data: source, id }),
      ref("DoneEvent"),
      ref("ErrorEvent"),
      object<EventOf<"cleared">>({ type: only("cleared"), data: only(""), id }),
    ),
    DoneEvent: object<EventOf<"done">>({
      type: only("done"),
      data: text("The text of the model's last turn."),
      state: ref("ConversationState"),
      usage: optional(ref("Usage")),
      finish_reason: ref("FinishReason"),
      approvals: optional(list(ref("ToolApproval"))),
      suggestions: optional(list(STRING, { maxItems: 3 })),
      title: optional(STRING),
      sources: optional(list(ref("CitedSource"))),
      model: optional(STRING),
      id,
    }),
    ErrorEvent: object<EventOf<"error">>({
      type: only("error"),
      data: text("For people."),
      code: ref("ErrorCode"),
      param: optional(STRING),
      problems: optional(list(ref("Problem"), { maxItems: 8 })),
      retryable: BOOLEAN,
      state: optional(ref("ConversationState")),
      continue: optional(only(true)),
      retry_after: optional(means("Seconds to wait.", { type: "number", minimum: 0 })),
      id,
    }),
  };
}

type SocketMessage = Exclude<SocketRequest, { type: string }>;
type ChatRequest = Omit<SocketMessage, "previous_response_id"> & { stream: boolean };

/** Base64 has four characters for three bytes. */
const MOST_BASE64 = Math.ceil(MAX_ATTACHMENT_BYTES / 3) * 4;

function requestSchemas({ messageChars, attachments, fileTypes }: Described["limits"]) {
  const metadata = {
    type: "object",
    maxProperties: 16,
    propertyNames: { pattern: "^[A-Za-z0-9_.-]{1,64}$" },
    additionalProperties: { type: "string", maxLength: 512 },
    description: "For the agent's code. Nothing proves it.",
  };
  const message = {
    message: orNull(
      text("The user's text. Empty only with a file, and absent beside `approvals` or `continue`.", {
        maxLength: messageChars,
      }),
    ),
    state: orNull(ref("ConversationState")),
    attachments: orNull(list(ref("Attachment"), { maxItems: attachments })),
    approvals: orNull(list(ref("ApprovalDecision"))),
    continue: orNull(means("Goes on without a message.", only(true))),
    run: orNull(means("A name for the answer, to come back to it: 128 random bits.", RUN)),
    metadata: orNull(metadata),
  };
  return {
    ChatRequest: object<ChatRequest>({ ...message, stream: means("`true`: SSE. `false`: JSON.", BOOLEAN) }),
    /** What a client sends on the socket. */
    SocketRequest: {
      anyOf: [
        object<SocketMessage>({ ...message, previous_response_id: orNull(STRING) }),
        object<{ type: string }>({ type: word("clear", "stop") }),
        object<{ type: string; token: string }>({ type: only("authenticate"), token: STRING }),
        object<{ type: string; run: string; after?: number }>({
          type: only("resume"),
          run: RUN,
          after: orNull(count("")),
        }),
      ],
    },
    Attachment: object<Attachment>({
      type: word("image", "file"),
      name: text("File name, shown to people and to the model."),
      mime_type: fileTypes.length === 0 ? STRING : word(...fileTypes),
      data: text("Base64 of the bytes, without a `data:` prefix.", { maxLength: MOST_BASE64 }),
    }),
    ApprovalDecision: object<ApprovalDecision>({
      id: text("`id` of the call."),
      approved: BOOLEAN,
      reason: orNull({ type: "string", maxLength: 1000 }),
      arguments: orNull(text("Changed arguments, as one JSON text.")),
    }),
    FeedbackRequest: object<FeedbackRequest>({
      run: means("Id of the run whose answer it is.", RUN),
      conversation: orNull(RUN),
      rating: { enum: ["up", "down", null], description: "`null` takes an earlier rating back." },
      reason: orNull({ type: "string", maxLength: 200 }),
      comment: orNull({ type: "string", maxLength: 4000 }),
      metadata: orNull(metadata),
    }),
  };
}

const json = (schema: Schema) => ({ "application/json": { schema } });
const answer = (description: string, content?: object) => ({ description, ...(content && { content }) });

const FAILED = {
  "4XX": answer(
    "The request is wrong, or may not be made. `Retry-After` where it may be repeated.",
    json(ref("Error")),
  ),
  "5XX": answer("The model or the server failed.", json(ref("Error"))),
};
const EVENTS = {
  "text/event-stream": {
    schema: means("Frames of `id:`, `event:` and `data:`. The data is one `Event`.", STRING),
  },
};
const FRAMES = { "text/event-stream": { schema: means("Frames whose data is one message.", STRING) } };
const RUN_PARAMETER = { name: "id", in: "path", required: true, schema: RUN };
const RUN_ID_HEADER = { "x-run-id": { description: "Id of the run.", schema: STRING } };

/** The paths that need no key. */
const OPEN_PATHS = {
  "/api/info": {
    get: {
      operationId: "getInfo",
      summary: "The agent, and what a user interface needs",
      responses: { 200: answer("The agent.", json(ref("AgentInfo"))), ...FAILED },
    },
  },
  "/health": {
    get: {
      operationId: "getHealth",
      summary: "Whether the process serves",
      responses: { 200: answer("It does.", json(ref("Health"))), ...FAILED },
    },
  },
  "/health/ready": {
    get: {
      operationId: "getReadiness",
      summary: "Whether new messages are taken",
      responses: { 200: answer("They are.", json(ref("Health"))), ...FAILED },
    },
  },
  "/openapi.json": {
    get: {
      operationId: "getOpenApi",
      summary: "This document",
      responses: { 200: answer("This document.", json({ type: "object" })), ...FAILED },
    },
  },
};

/** The document. */
export function openApi(described: Described): object {
  const { title, version, basePath, requiresKey, hasUsers, limits } = described;
  const key = requiresKey ? { key: [] } : {};
  // The second entry is for users that the agent does not know.
  const security = hasUsers ? [{ ...key, user: [] }, key] : requiresKey ? [key] : [];
  const schemas: Record<SchemaName, Schema> = {
    ...stateSchemas(),
    ...toolSchemas(),
    ...answerSchemas(),
    ...ownersSchemas(),
    ...eventSchemas(),
    ...requestSchemas(limits),
  };
  return {
    openapi: "3.1.1",
    info: { title, version, description: "One agent, over JSON, Server-Sent Events and WebSocket." },
    servers: [{ url: basePath === "" ? "/" : basePath }],
    ...(security.length === 0 ? {} : { security }),
    paths: pathsOf(described),
    components: {
      schemas,
      ...(security.length === 0 ? {} : { securitySchemes: schemesOf(described) }),
    },
  };
}

function schemesOf({ requiresKey, hasUsers }: Described) {
  return {
    ...(requiresKey && { key: { type: "http", scheme: "bearer" } }),
    ...(hasUsers && {
      user: { type: "apiKey", in: "header", name: "x-user-token", description: "Says who the user is." },
    }),
  };
}

function pathsOf({ open, limits, basePath, requiresKey, hasUsers }: Described): object {
  const body = (name: SchemaName, description: string) => ({
    description,
    required: true,
    content: json(ref(name)),
  });
  const chat = {
    operationId: "chat",
    summary: "The answer to one message",
    requestBody: body("ChatRequest", `At most ${limits.bodyBytes} bytes.`),
    responses: {
      200: {
        ...answer("The answer.", { ...json(ref("ChatResponse")), ...EVENTS }),
        headers: RUN_ID_HEADER,
      },
      ...FAILED,
    },
  };
  return {
    ...Object.fromEntries(
      Object.entries(OPEN_PATHS).map(([path, { get }]) => {
        // The answer also tells who the user is.
        const security = path === "/api/info" && hasUsers ? [{ user: [] }, {}] : [];
        return [path, { get: { ...get, security } }];
      }),
    ),
    "/api/chat": { post: chat },
    "/api/chat/runs/{id}": { get: { ...resume, parameters: [RUN_PARAMETER, AFTER] } },
    "/api/chat/runs/{id}/cancel": { post: { ...cancel, parameters: [RUN_PARAMETER] } },
    "/ws/chat": { get: socket },
    ...(open.feedback && {
      "/api/feedback": {
        post: {
          operationId: "rate",
          summary: "Takes a rating of an answer",
          requestBody: body("FeedbackRequest", "At most 131072 bytes."),
          responses: { 204: answer("It is taken."), ...FAILED },
        },
      },
    }),
    ...(open.openai && { "/v1/models": { get: models }, "/v1/chat/completions": { post: completions } }),
    ...(open.mcp && { "/mcp": { post: mcp } }),
    ...(open.metrics && {
      // Always at the root, even if everything else is below a base path.
      "/metrics": {
        get: { ...metrics, security: requiresKey ? [{ key: [] }] : [] },
        ...(basePath === "" ? {} : { servers: [{ url: "/" }] }),
      },
    }),
  };
}

const AFTER = {
  name: "Last-Event-ID",
  in: "header",
  schema: { type: "integer", minimum: 0 },
  description: "Number of the last event that you have. Without it, you get all events.",
};

const resume = {
  operationId: "resumeRun",
  summary: "The rest of a streamed answer",
  responses: { 200: answer("The events.", EVENTS), 204: answer("There are no more."), ...FAILED },
};

const cancel = {
  operationId: "cancelRun",
  summary: "Ends an answer",
  responses: { 200: answer("Whether it was ended.", json(ref("CancelResponse"))), ...FAILED },
};

const socket = {
  operationId: "openSocket",
  summary: "A conversation, over a WebSocket",
  description: "Takes text frames of `SocketRequest`, and sends text frames of `Event`. A key may stand in `?key=`.",
  responses: { 101: answer("The socket is open."), "4XX": FAILED["4XX"] },
};

/** Bodies that OpenAI's clients know, so they are not described further. */
const OPENAI = json({ type: "object", description: "As in the API of OpenAI." });
const OPENAI_FAILED = {
  "4XX": answer("The request is wrong, or may not be made.", OPENAI),
  "5XX": answer("The model or the server failed.", OPENAI),
};

const models = {
  operationId: "listModels",
  summary: "The agent, as a model of OpenAI's",
  responses: { 200: answer("A list of one.", OPENAI), ...OPENAI_FAILED },
};

const completions = {
  operationId: "completeChat",
  summary: "The answer to a conversation, for OpenAI's clients",
  requestBody: { required: true, content: OPENAI },
  responses: { 200: answer("The answer.", { ...OPENAI, ...FRAMES }), ...OPENAI_FAILED },
};

const JSON_RPC = json({ type: "object", description: "One message of JSON-RPC 2.0." });

const mcp = {
  operationId: "mcp",
  summary: "The agent as a tool of the Model Context Protocol",
  requestBody: { required: true, content: JSON_RPC },
  responses: {
    200: answer("The answer, with what is done until it comes.", { ...JSON_RPC, ...FRAMES }),
    202: answer("A notification is taken."),
    "4XX": answer("The request is wrong, or may not be made.", JSON_RPC),
    "5XX": answer("The server failed.", JSON_RPC),
  },
};

const metrics = {
  operationId: "getMetrics",
  summary: "Metrics for Prometheus",
  responses: { 200: answer("The metrics.", { "text/plain": { schema: STRING } }), ...FAILED },
};
