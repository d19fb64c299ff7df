/** Minified by the build as Lit's tag of this name is. */
const css = String.raw;

/** Colours of code: 4.5:1 and more on `--agent-chat-sunken` in both themes. */
const rules = css`
  :host {
    --_code-keyword: var(--agent-chat-code-keyword, light-dark(#8b2fb0, #d3a0f7));
    --_code-string: var(--agent-chat-code-string, light-dark(#067647, #7fd6a3));
    --_code-number: var(--agent-chat-code-number, light-dark(#a1450a, #f0b27a));
    --_code-comment: var(--agent-chat-code-comment, light-dark(#676772, #93939e));
    --_code-function: var(--agent-chat-code-function, light-dark(#1d4ed8, #8ab4ff));
    --_code-type: var(--agent-chat-code-type, light-dark(#0b6b7d, #67d3e0));
    --_code-variable: var(--agent-chat-code-variable, light-dark(#a3264f, #f2a3b8));
    --_code-inserted: var(--agent-chat-code-inserted, light-dark(#067647, #5ad58d));
    --_code-deleted: var(--agent-chat-code-deleted, light-dark(#b42318, #ff9a94));
  }
`;

/** For the root that holds the code. Two rules for each role: a browser that does not know highlights drops what names one. */
export const highlightSheet = new CSSStyleSheet();
const colours = [...rules.matchAll(/--_code-(\w+):/g)].map(
  ([, role]) => `.token-${role}{color:var(--_code-${role})}::highlight(agent-chat-${role}){color:var(--_code-${role})}`,
);
highlightSheet.replaceSync(`${rules}@media not (forced-colors: active){${colours.join("")}}`);
