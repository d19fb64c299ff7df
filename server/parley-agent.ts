/** What a project imports as `parley-agent`. */

export type { ChatDefinition } from "./agent/chat-definition.ts";
export { type AgentDefinition, defineAgent, type ModelName } from "./agent/define.ts";
export type {
  Feedback,
  Hooks,
  IncomingMessage,
  Refusal,
  Replacement,
} from "./agent/hooks.ts";
export type { McpHttpServer, McpProgram, McpServerDefinition } from "./agent/mcp-definition.ts";
export type { Price } from "./agent/prices.ts";
export type { RunContext } from "./agent/run-context.ts";
export type {
  AgentObject,
  AskedApproval,
  RunAttachment,
  RunEvent,
  RunFunction,
  RunInput,
  TextMessage,
} from "./agent/run-function.ts";
export type { RunRecord, ToolCallRecord } from "./agent/run-record.ts";
export {
  type ToolContext,
  type ToolDefinition,
  ToolError,
  type ToolTextsDefinition,
  tool,
  toolResult,
} from "./agent/tool-definition.ts";
export type { ToolImage, ToolResultParts } from "./agent/tool-result.ts";
export type { JsonSchema, SchemaArguments, StandardSchema } from "./agent/tool-schema.ts";
export type { Expose } from "./agent/tool-words.ts";
export type { Register, User } from "./auth/access.ts";
export { type Authenticate, type AuthRequest, Unauthorized } from "./auth/authenticate.ts";
export { agUi, type RemoteOptions, responses } from "./hosted/remote.ts";
export { toModelMessages, toResume, toRunState } from "./hosted/to-framework.ts";
export type { AttachedFile, RecordedUsage } from "./observe/run-observer.ts";
export type { ApprovalDecision, ByTheme, OwnersButton, ToolApproval, ToolText, Usage } from "./protocol/chat.ts";
export type { ResultSource } from "./protocol/sources.ts";
export type { AiSdkLanguageModel } from "./providers/ai-sdk/language-model.ts";
