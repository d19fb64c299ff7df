/**
 * Of lit, the widget leaves out what its browsers never need: style sheets for browsers without `adoptedStyleSheets`,
 * hooks for polyfills and hydration, decorators' metadata, `svg` and `mathml` templates, compiled templates, directives that go
 * on by themselves, converters, accessors that somebody else has written (1.3 kB on the wire). It also keeps lit from writing its versions into the host page's globals. Fails when lit has a new form.
 */

import { readFile } from "node:fs/promises";

/** By file: what goes, and what comes in its place. */
const cuts = {
  "lit-html.js": [
    [/,(\w)=\w\.litHtmlPolyfillSupport;\1\?\.\(\w,\w\),\(\w\.litHtmlVersions\?\?=\[\]\)\.push\("[\d.]+"\);/, ";"],
    [/2===(\w)\?"<svg>":3===\1\?"<math>":""/, '""'],
    [/\+\(2===(\w)\?"<\/svg>":3===\1\?"<\/math>":""\)/, ""],
    [/if\((this\.el=[^;]*?\.currentNode=this\.el\.content),2===\w\|\|3===\w\)\{[^}]*\}/, "$1;"],
    [/"number"==typeof \w\?(this\._\$AC\(\w\)):\(void 0===\w\.el&&\([^;]*?\),\w\)/, "$1"],
    // Whoever uses one of these gets an error from the build.
    [/(export\{.*),\w as mathml\b/, "$1"],
    [/(export\{.*),\w as svg\b/, "$1"],
    // Elements whose content is text, and comments: `compact-templates.mjs` refuses templates with such a thing.
    [/\(\w\.test\((\w)\[2\]\)&&\(\w=RegExp\("<\/"\+\1\[2\],"g"\)\),(\w=\w)\)/, "($2)"],
    [/\((\w)=\w\?\?(\w),(\w=-1)\)/, "($1=$2,$3)"],
    [/:\((\w=\w),\w=void 0\);const/, ":$1;const"],
    [/"!--"===\w\[1\]\?\w=\w:/, ""],
    [/:\w===\w\|\|(\w===\w\?\w=\w:\(?\w=)/, ":$1"],
    [/if\(\w\.test\(\w\.tagName\)\)\{.*?,\w\(\)\)\}\}/, ""],
    [/else\{let (\w)=-1;for\(;-1!==\(\1=.*?length-1\}/, ""],
    // What directives are told that go on while they are not drawn.
    [/\w\?\._\$AO\?\.\(!1\),/, ""],
    [/this\._\$AP\?\.\(!1,!0,\w\)/, ""],
    [/setConnected\(\w\)\{[^}]*\}/, ""],
    [/,this\._\$Cv=\w\?\.isConnected\?\?!0/, ""],
    [/get _\$AU\(\)\{[^}]*\}/g, ""],
    [/this\._\$AN=void 0,/g, ""],
    [/\w\?\.renderBefore\?\?(\w)(?=;let)/, "$1"],
    [/\w\?\.renderBefore\?\?null/, "null"],
    // What they may ask of their place.
    [/get (?:parentNode|startNode|endNode|tagName)\(\)\{[^}]*\}/g, ""],
  ],
  "directive.js": [[/get _\$AU\(\)\{[^}]*\}/, ""]],
  "reactive-element.js": [
    [/,\w=\w\.reactiveElementPolyfillSupport\b/, ""],
    [/,\w\?\.\(\{ReactiveElement:\w\}\),\(\w\.reactiveElementVersions\?\?=\[\]\)\.push\("[\d.]+"\)/, ""],
    [/Symbol\.metadata\?\?=Symbol\("metadata"\),\w\.litPropertyMetadata\?\?=new WeakMap;/, ""],
    [
      /const (\w)=this\[Symbol\.metadata\];if\(null!==\1\)\{const \w=litPropertyMetadata.*?elementProperties\.set\(\w,\w\)\}/,
      "",
    ],
    [/static addInitializer\(\w\)\{[^}]*\}/, ""],
    [/,void 0!==\w\.l&&\(this\.l=\[\.\.\.\w\.l\]\)/, ""],
    [/,this\.constructor\.l\?\.forEach\(\w=>\w\(this\)\)/, ""],
    [/removeController\(\w\)\{[^}]*\}/, ""],
    // Attributes are texts or switches, and properties plain ones.
    [/case Object:case Array:\w=null==\w\?\w:JSON\.stringify\(\w\)/, ""],
    [/case Number:.*?catch\(\w\)\{\w=null\}/, ""],
    [/\(void 0!==\w\.converter\?\.toAttribute\?\w\.converter:(\w)\)/, "$1"],
    [/"function"==typeof \w\.converter\?.*?\?\w\.converter:(\w)/, "$1"],
    [/(\w)\.state&&\(\1\.attribute=!1\),/, ""],
    [/!\w\.noAccessor/, "!0"],
    [/this\.prototype\.hasOwnProperty\(\w\)&&\(\(\w=Object\.create\(\w\)\)\.wrapped=!0\),/, ""],
    [/\w\(this\.prototype,\w\)\?\?\{get\(\)/, "{get()"],
    [/const \w=this\.constructor\.elementProperties;if\(\w\.size>0\)for.*?\w\)\}(?=\})/, ""],
    [/\((\(\w\.hasChanged\?\?\w\)\(\w,\w\))\|\|\w\.useDefault.*?\)\)\)\)return/, "$1)return"],
    [/\w\?\?this\._\$Ej\?\.get\(\w\)\?\?(\w)/, "$1"],
    [/useDefault:(\w),(reflect:\w),wrapped:\w\},\w\)\{\1&&.*?\|\|\(this\._\$AL/, "$2}){(this._$AL"],
    [/(this\.hasUpdated\|\|)\w\|\|(\(\w=void 0\))/, "$1$2"],
    [/,useDefault:!1/, ""],
    [/type:String,converter:\w,/, ""],
    [/\(\w\.hasChanged\?\?(\w)\)/, "$1"],
    [/,hasChanged:\w/, ""],
    // Styles are sheets already, and each element's are a list without doubles.
    [/(finalizeStyles\((\w)\)\{)const \w=\[\];.*?return \w\}/, "$1return[$2].flat(1/0)}"],
    // Hooks that no element of ours has.
    [/\w=this\.shouldUpdate\((\w)\),(\w)\?\((this\.willUpdate.*?)\):this\._\$EM\(\)/, "$2=!0,$3"],
    [/shouldUpdate\(\w\)\{return!0\}/, ""],
    [/(this\.hasUpdated=!0),this\.firstUpdated\(\w\)/, "$1"],
    [/firstUpdated\(\w\)\{\}/, ""],
  ],
  "lit-element.js": [
    [/connectedCallback\(\)\{[^}]*setConnected\(!0\)\}disconnectedCallback\(\)\{[^}]*\}/, ""],
    [/this\.hasUpdated\|\|\(this\.renderOptions\.isConnected=this\.isConnected\),/, ""],
    [/,this\._\$Do=void 0/, ""],
    // A shadow root of ours is empty before it is drawn, or holds the early button, which does not mind its place.
    [/createRenderRoot\(\)\{.*?firstChild,\w\}/, ""],
    [/this\._\$Do=(\w\()/, "$1"],
    [/\w\._\$litElement\$=!0,/, ""],
    [
      /,\w\.litElementHydrateSupport\?\.\(\{LitElement:\w\}\);const (\w)=\w\.litElementPolyfillSupport;\1\?\.\(\{LitElement:\w\}\);/,
      ";",
    ],
    [/\(\w\.litElementVersions\?\?=\[\]\)\.push\("[\d.]+"\);/, ""],
  ],
};

/** In place of `css-tag.js`: the same names, for browsers that adopt style sheets, and templates without expressions. */
const cssTag = `
export class CSSResult {
  constructor(cssText) { this.cssText = cssText; }
  get styleSheet() {
    if (!this.sheet) (this.sheet = new CSSStyleSheet()).replaceSync(this.cssText);
    return this.sheet;
  }
}
export const unsafeCSS = (text) => new CSSResult(text);
export const css = ([text]) => new CSSResult(text);
export const adoptStyles = (root, styles) => {
  root.adoptedStyleSheets = styles.map((style) => style.styleSheet);
};
export const getCompatibleStyle = (style) => style;
export const supportsAdoptingStyleSheets = true;
`;

const cssTagExports =
  /export\{\w as CSSResult,\w as adoptStyles,\w as css,\w as getCompatibleStyle,\w as supportsAdoptingStyleSheets,\w as unsafeCSS\};/;

/** Cuts lit's files when esbuild loads them. */
export const litCoreOnly = {
  name: "lit-core-only",
  setup({ onLoad }) {
    onLoad({ filter: /[\\/](?:lit-html|lit-element|reactive-element)[\\/][a-z-]+\.js$/ }, async ({ path }) => {
      const file = path.split(/[\\/]/).at(-1);
      return { contents: coreOnly(file, await readFile(path, "utf8")) };
    });
  },
};

/** The source of one of lit's files without what the widget never needs; other files are given back as they are. */
export function coreOnly(file, source) {
  if (file === "css-tag.js") {
    if (!cssTagExports.test(source)) throw hasChanged(file, cssTagExports);
    return cssTag;
  }
  let code = source;
  for (const [pattern, replacement] of cuts[file] ?? []) {
    const before = code;
    code = code.replace(pattern, replacement);
    if (code === before) throw hasChanged(file, pattern);
  }
  return code;
}

function hasChanged(file, pattern) {
  return new Error(`lit's ${file} has a new form (${pattern}): adapt build/lit-core.mjs`);
}
