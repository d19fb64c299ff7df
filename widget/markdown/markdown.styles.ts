import { type CSSResultGroup, css } from "lit";
import { markdownBoxStyles } from "./markdown-boxes.styles.ts";

const markdownTextStyles = css`
  .markdown {
    color: var(--_text);
    overflow-wrap: anywhere;
  }

  .markdown :is(p, h1, h2, h3, h4, h5, h6, th, td) {
    unicode-bidi: plaintext;
  }

  :is(.markdown, .section) > * {
    margin-block: 0 12px;
  }

  .markdown > :last-child {
    margin-block-end: 0;
  }

  /*
   * Containment clips at the padding, which leaves room for focus rings; and no margin collapses through it. What goes on in one
   * section is nothing that a browser has to look at in the others.
   */
  .section {
    contain: layout style;
    margin: 0 -14px;
    padding-inline: 14px;
    contain-intrinsic-size: auto 600px;
  }

  /*
   * Takes back what its last block keeps below itself. A rule for what is in a last child would have browsers style all blocks
   * of an answer anew when something comes after them.
   */
  .markdown > .section:last-child {
    margin-block-end: -12px;
  }

  .passed {
    content-visibility: auto;
  }

  .markdown :is(h1, h2, h3, h4, h5, h6) {
    font-size: 1em;
    font-weight: 600;
    line-height: 1.35;
    margin-block: 20px 8px;
    text-wrap: balance;
  }

  .markdown h1 {
    font-size: 1.25em;
  }

  .markdown h2 {
    font-size: 1.125em;
  }

  .markdown :is(h5, h6, del, blockquote) {
    color: var(--_muted);
  }

  .markdown > :is(h1, h2, h3, h4, h5, h6):first-child {
    margin-block-start: 0;
  }

  /* The block before has left 12 pixels of it, above which the two do not collapse. */
  .section > :is(h1, h2, h3, h4, h5, h6):first-child {
    margin-block-start: 8px;
  }

  .markdown :is(strong, th) {
    font-weight: 600;
  }

  .markdown a {
    border-radius: 2px;
    color: var(--_link);
    text-decoration: underline;
    text-decoration-color: color-mix(in oklab, currentcolor 40%, transparent);
    text-decoration-thickness: from-font;
    text-underline-offset: 0.2em;
    unicode-bidi: isolate;
  }

  .markdown a:hover {
    text-decoration-color: currentcolor;
  }

  .markdown hr {
    border: 0;
    border-block-start: 1px solid var(--_border);
    margin-block: 20px;
  }

  .markdown blockquote {
    border-inline-start: 3px solid var(--_border);
    margin-inline: 0;
    padding-inline-start: 14px;
  }

  .markdown :is(blockquote, li) > * {
    margin-block: 0 8px;
  }

  .markdown :is(blockquote, li) > :last-child {
    margin-block-end: 0;
  }

  .markdown :is(ul, ol) {
    --_gap: 4px;
    padding-inline-start: 1.625em;
  }

  .markdown [wide] {
    padding-inline-start: 3.25em;
  }

  .markdown .loose {
    --_gap: 12px;
  }

  .markdown :is(li + li, ul > div, ol > div) {
    margin-block-start: var(--_gap);
  }

  .markdown li > p:not(:last-child) {
    margin-block-end: min(8px, var(--_gap));
  }

  .markdown :is(ul, ol) > div {
    contain: layout;
  }

  .markdown li::marker {
    color: var(--_muted);
    font-variant-numeric: tabular-nums;
  }

  .markdown .task {
    list-style: none;
  }

  .markdown .task input {
    appearance: none;
    block-size: 1em;
    border: 1.5px solid var(--_border-strong);
    border-radius: 0.25em;
    inline-size: 1em;
    margin-block: 0;
    margin-inline: -1.5em 0.5em;
    vertical-align: -0.125em;
  }

  .markdown .task :checked {
    background: var(--_accent);
    border-color: var(--_accent);
  }

  /* A mark of two borders, which forced colours leave visible. */
  .markdown .task :checked::before {
    block-size: 60%;
    border: solid var(--_on-accent);
    border-width: 0 2px 2px 0;
    content: "";
    display: block;
    inline-size: 25%;
    margin: 0 auto;
    rotate: 45deg;
  }

  .markdown .source {
    white-space: pre-wrap;
  }

  .markdown code {
    background: var(--_sunken);
    border-radius: calc(5px * var(--_round));
    font-family: var(--_font-mono);
    font-size: 0.875em;
    padding-block: 0.125em;
    padding-inline: 0.3em;
  }
`;

/**
 * Looks of rendered Markdown: everything below an element with the class `markdown`. Colours and sizes come from the
 * host's private variables (`tokens.styles.ts`).
 */
export const markdownStyles: CSSResultGroup = [markdownTextStyles, markdownBoxStyles];
