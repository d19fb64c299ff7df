/** The kinds of blocks in answers. Everything that depends on the kind of a block is in this table. */

import { html, type TemplateResult } from "lit";
import type { Block, Message, Step, ToolBlock } from "../conversations/messages.ts";
import type { Strings } from "../i18n/strings.ts";
import { lazy } from "../loading/lazy.ts";
import type { BlockModule } from "./block-module.ts";
import type { LazyElement } from "./chat-part.ts";
import type { ChatContext, ChatModes } from "./context.ts";

/** The message around blocks, as passed to `draw`. */
export interface BlockHost {
  readonly context: ChatContext;
  readonly message: Message;
  /** Whether decisions about calls can be sent. */
  readonly canDecide: boolean;
}

/** How blocks are drawn. */
export interface BlockDrawing<It extends Block = Block> {
  /** Draws consecutive blocks together. Absent if every conversation has the code: each block is drawn separately. */
  readonly element?: LazyElement;
  /** `isLive`: more may follow at the end. */
  draw(blocks: readonly It[], isLive: boolean, host: BlockHost): TemplateResult;
}

export interface BlockKind<It extends Block = Block> extends BlockDrawing<It> {
  readonly element?: LazyElement<BlockModule<It>>;
  /** For blocks that ask the user, which are drawn together for an answer. Used while `element` cannot be loaded. */
  readonly standIn?: BlockDrawing<It> & { readonly element: LazyElement };
  /** The attribute of the chat that can hide such blocks. */
  readonly mode?: "thinking" | "tools";
  /** Whether a block shows that the agent is working. Absent: never. `isNewest`: the last block, if it still grows. */
  isActive?(block: It, isNewest: boolean): boolean;
  /** Spoken after the texts when an answer has ended. Absent for texts, and for blocks that were announced earlier. */
  speak?(block: It, strings: Strings): string;
}

const steps = {
  element: { tag: "agent-chat-steps", module: lazy(() => import("./steps.ts"), "StepsElement") },
  draw: (blocks: readonly Step[], isLive: boolean, { context, message }: BlockHost) =>
    html`<agent-chat-steps
      ?data-two=${blocks.length === 2}
      .context=${context}
      .steps=${blocks}
      .isLive=${isLive}
      .message=${message}
    ></agent-chat-steps>`,
};

type BlockKinds = { readonly [Type in Block["type"]]: BlockKind<Extract<Block, { type: Type }>> } & {
  readonly approval: BlockKind<ToolBlock>;
};

export const blockKinds = {
  text: {
    draw: ([block], isLive, { context }) =>
      html`<agent-chat-markdown
        part="markdown"
        class="markdown"
        .context=${context}
        .text=${block?.text}
        .isStreaming=${isLive}
      ></agent-chat-markdown>`,
    isActive: ({ text }, isNewest) => isNewest && text.trim() !== "",
  },
  thinking: { ...steps, mode: "thinking", isActive: ({ endedAt }) => endedAt === undefined },
  tool: { ...steps, mode: "tools", isActive: ({ status }) => status === "running" },
  /** Calls that wait for the user's decision. */
  approval: {
    element: { tag: "agent-chat-approval", module: lazy(() => import("./approval.ts"), "ApprovalElement") },
    draw: (calls, _, { context, canDecide }) =>
      html`<agent-chat-approval .context=${context} .calls=${calls} .canDecide=${canDecide}></agent-chat-approval>`,
    standIn: {
      element: { tag: "agent-chat-plain-question", module: lazy(() => import("./plain-question.ts"), "PlainQuestion") },
      draw: (calls, _, { context, canDecide }) =>
        html`<agent-chat-plain-question .context=${context} .calls=${calls} .canDecide=${canDecide}></agent-chat-plain-question>`,
    },
    speak: ({ tool, approval }) => approval?.text || tool,
  },
} satisfies BlockKinds;

export function kindOf(block: Block): BlockKind {
  return blockKinds[block.type === "tool" && block.status === "waiting" ? "approval" : block.type];
}

/** Whether the page hides blocks of this kind. */
export function isHidden(block: Block, modes: ChatModes): boolean {
  const { mode } = kindOf(block);
  return mode !== undefined && modes[mode] === "hidden";
}
