/** What a site's TypeScript may name: the types behind `parley-agent/widget`. */

import type { AgentChat } from "./agent-chat.ts";
import type { AgentChatLauncher } from "./agent-chat-launcher.ts";

export type {
  AgentChatDoneEvent,
  AgentChatErrorEvent,
  AgentChatFeedbackEvent,
  AgentChatMessageEvent,
  AgentChatReadyEvent,
  AgentChatTokenEvent,
  AgentChatToolEvent,
} from "./agent-chat.events.ts";
export type { AgentChat, TranscriptFormat } from "./agent-chat.ts";
export type { AgentChatLauncher } from "./agent-chat-launcher.ts";
export type { Strings, StringsOverride } from "./strings.ts";

/** Attributes and properties that both elements have, as a JSX template may set them. */
type Shared = Partial<
  Pick<
    AgentChat,
    | "server"
    | "theme"
    | "accent"
    | "density"
    | "corners"
    | "strings"
    | "persist"
    | "thinking"
    | "tools"
    | "actions"
    | "feedback"
    | "disclaimer"
  >
>;

/** What `<agent-chat>` takes in a JSX template. */
export interface AgentChatProps extends Shared {
  "api-key"?: string;
  apiKey?: string;
  page?: boolean;
  embed?: boolean;
}

/** What `<agent-chat-launcher>` takes in a JSX template. */
export interface AgentChatLauncherProps
  extends Shared,
    Partial<
      Pick<AgentChatLauncher, "apiKey" | "position" | "icon" | "size" | "label" | "preview">
    > {
  "auto-open"?: number | string;
  "preview-after"?: number | string;
}
