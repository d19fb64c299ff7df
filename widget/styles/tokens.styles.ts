/**
 * The colours and measures that a site may set, in light and dark. Contrast: WCAG AA, most of it AAA.
 *
 * Rules read the private names; what only a chunk draws with is read there. The public ones are never set here, so that what a site gives to an ancestor (`:root`, a
 * launcher) comes through:
 *
 * @cssprop --agent-chat-bg - Background.
 * @cssprop --agent-chat-surface - Background of the person's messages and the composer.
 * @cssprop --agent-chat-sunken - Background of code and tool data.
 * @cssprop --agent-chat-text - Text.
 * @cssprop --agent-chat-muted - Secondary text.
 * @cssprop --agent-chat-subtle - Placeholder and times.
 * @cssprop --agent-chat-border - Separating lines.
 * @cssprop --agent-chat-border-strong - Outlines of fields.
 * @cssprop --agent-chat-accent - Buttons, focus ring.
 * @cssprop --agent-chat-on-accent - Text on the accent.
 * @cssprop --agent-chat-link - Links.
 * @cssprop --agent-chat-danger - Failures.
 * @cssprop --agent-chat-danger-bg - Background of failures.
 * @cssprop --agent-chat-warn - The mark of a line that is lost.
 * @cssprop --agent-chat-success - The mark of a completed tool call.
 * @cssprop --agent-chat-radius - Corners of code and cards.
 * @cssprop --agent-chat-font - Font family.
 * @cssprop --agent-chat-font-mono - Font family of code.
 * @cssprop --agent-chat-column - Width of the reading column.
 * @cssprop --agent-chat-code-keyword - Keywords in code.
 * @cssprop --agent-chat-code-string - Strings in code.
 * @cssprop --agent-chat-code-number - Numbers and constants in code.
 * @cssprop --agent-chat-code-comment - Comments in code.
 * @cssprop --agent-chat-code-function - Names of functions in code.
 * @cssprop --agent-chat-code-type - Names of types and classes in code.
 * @cssprop --agent-chat-code-variable - Names of variables, keys and attributes in code.
 * @cssprop --agent-chat-code-inserted - Inserted lines of a diff.
 * @cssprop --agent-chat-code-deleted - Deleted lines of a diff.
 */

import { css } from "lit";

export const tokenStyles = css`
  :host {
    /* As around the element, live. Important, because a page's rule for every element would decide otherwise. */
    color-scheme: inherit !important;
    /* Draws nothing: it lets the script see whether it is dark, and be told when that changes. */
    column-rule-color: light-dark(#000, #fff) !important;
    --_bg: var(--agent-chat-bg, light-dark(#fff, #131316));
    --_surface: var(--agent-chat-surface, light-dark(#f4f4f5, #1f1f24));
    --_sunken: var(--agent-chat-sunken, light-dark(#f7f7f8, #1a1a1e));
    --_text: var(--agent-chat-text, light-dark(#18181b, #ececf1));
    --_muted: var(--agent-chat-muted, light-dark(#52525b, #a9a9b4));
    --_subtle: var(--agent-chat-subtle, light-dark(#6b6b75, #90909b));
    --_border: var(--agent-chat-border, light-dark(#e4e4e7, #2e2e35));
    --_border-strong: var(--agent-chat-border-strong, light-dark(#8a8a93, #73737d));
    --_accent: var(--agent-chat-accent, light-dark(#2563eb, #3366e6));
    --_on-accent: var(--agent-chat-on-accent, var(--_contrast, #fff));
    --_link: var(--agent-chat-link, light-dark(#1d4ed8, #8ab4ff));
    --_danger: var(--agent-chat-danger, light-dark(#b42318, #ff9a94));
    --_danger-bg: var(--agent-chat-danger-bg, light-dark(#fef3f2, #3a1614));
    --_warn: var(--agent-chat-warn, light-dark(#93370d, #f5b971));
    --_radius: var(--agent-chat-radius, calc(12px * var(--_round)));
    --_font: var(--agent-chat-font, system-ui, sans-serif);
    --_font-mono: var(
      --agent-chat-font-mono,
      ui-monospace, Menlo, Consolas, "Liberation Mono", monospace
    );
    --_column: var(--agent-chat-column, 736px);
    --_ring: var(--_accent);
    --_round: 1;
    --_pill: 999px;
    --_gap: 20px;
    --_size: 16px;
    --_leading: 1.625;
  }

  /* Black or white, whichever differs more from the accent: 0.179 is the luminance at which both have 4.58 : 1. */
  /* With arithmetic, which Safari 17 does not have there, and of such a color as ours, which came later than the rest. What is
     not understood would take the focus ring away. */
  @supports (color: color(from light-dark(red, red) xyz-d65 calc(x + 1) y z)) {
    :host {
      --_contrast: color(
        from var(--_accent) xyz-d65 clamp(0, (0.179 - y) * 1e5, 0.9505)
          clamp(0, (0.179 - y) * 1e5, 1) clamp(0, (0.179 - y) * 1e5, 1.089)
      );
      /* The accent, as much darker or lighter as 3 : 1 beside our surfaces needs: a luminance of 0.25 or 0.15. */
      --_ring: light-dark(
        color(
          from var(--_accent) xyz-d65 calc(x * 0.25 / max(0.25, y)) calc(y * 0.25 / max(0.25, y))
            calc(z * 0.25 / max(0.25, y))
        ),
        color(
          from var(--_accent) xyz-d65 calc(x + 0.95 * max(0, 0.15 - y)) calc(y + max(0, 0.15 - y))
            calc(z + 1.09 * max(0, 0.15 - y))
        )
      );
    }
  }

  /* Important, so that it outlives a reset for those who want no motion: this moves nothing. */
  .chat {
    column-rule-color: inherit;
    transition: column-rule-color 1ms !important;
  }

  :host([theme="light"]) {
    color-scheme: light !important;
  }

  :host([theme="dark"]) {
    color-scheme: dark !important;
  }

  :host([corners="soft"]) {
    --_round: 0.6;
    --_pill: 10px;
  }

  :host([corners="sharp"]) {
    --_round: 0.15;
    --_pill: 3px;
  }

  :host([density="compact"]) {
    --_gap: 12px;
    --_size: 14px;
    --_leading: 1.5;
  }

  :host([density="spacious"]) {
    --_gap: 32px;
    --_size: 17px;
    --_leading: 1.7;
  }
`;
