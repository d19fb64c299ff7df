/** The colours and measures that a site may set, in light and dark. Contrast: WCAG AA, most of it AAA. */

import { css } from "lit";

const light = css`
  color-scheme: light;
  --agent-chat-bg: #ffffff;
  --agent-chat-surface: #f4f4f5;
  --agent-chat-sunken: #f7f7f8;
  --agent-chat-text: #18181b;
  --agent-chat-muted: #52525b;
  --agent-chat-subtle: #6b6b75;
  --agent-chat-border: #e4e4e7;
  --agent-chat-border-strong: #8a8a93;
  --agent-chat-accent: #2563eb;
  --agent-chat-on-accent: #ffffff;
  --agent-chat-link: #1d4ed8;
  --agent-chat-danger: #b42318;
  --agent-chat-danger-bg: #fef3f2;
  --agent-chat-success: #067647;
`;

const dark = css`
  color-scheme: dark;
  --agent-chat-bg: #131316;
  --agent-chat-surface: #1f1f24;
  --agent-chat-sunken: #1a1a1e;
  --agent-chat-text: #ececf1;
  --agent-chat-muted: #a9a9b4;
  --agent-chat-subtle: #90909b;
  --agent-chat-border: #2e2e35;
  --agent-chat-border-strong: #73737d;
  --agent-chat-accent: #3366e6;
  --agent-chat-on-accent: #ffffff;
  --agent-chat-link: #8ab4ff;
  --agent-chat-danger: #ff9a94;
  --agent-chat-danger-bg: #3a1614;
  --agent-chat-success: #5ad58d;
`;

export const tokenStyles = css`
  :host {
    ${light}
    --agent-chat-radius: 12px;
    --agent-chat-column: 46rem;
    --agent-chat-font:
      system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", Arial, sans-serif;
    --agent-chat-font-mono:
      ui-monospace, SFMono-Regular, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace;
  }

  @media (prefers-color-scheme: dark) {
    :host {
      ${dark}
    }
  }

  :host([theme="light"]) {
    ${light}
  }

  :host([theme="dark"]) {
    ${dark}
  }
`;
