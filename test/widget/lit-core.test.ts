import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { coreOnly } from "../../build/lit-core.mjs";

/** The files that a browser gets, which are not those that Node resolves. */
const FILES = {
  "lit-html.js": "node_modules/lit-html/lit-html.js",
  "reactive-element.js": "node_modules/@lit/reactive-element/reactive-element.js",
  "css-tag.js": "node_modules/@lit/reactive-element/css-tag.js",
  "lit-element.js": "node_modules/lit-element/lit-element.js",
  "directive.js": "node_modules/lit-html/directive.js",
};

const sources = Object.entries(FILES).map(([file, path]) => [file, readFileSync(path, "utf8")] as const);

test("what is built into the widget of lit leaves no mark in the globals of the host page", () => {
  const global = /litHtmlVersions|litElementVersions|reactiveElementVersions|Symbol\.metadata\?\?=/;
  for (const [file, source] of sources) {
    const core = coreOnly(file, source);
    assert.ok(core.length < source.length, file);
    assert.doesNotMatch(core, global);
    assert.doesNotMatch(core, /PolyfillSupport|HydrateSupport/);
  }
  assert.ok(sources.some(([, source]) => global.test(source)));
});

test("a template of SVG, which would be drawn wrong, is an error of the build", () => {
  const [, lit = ""] = sources[0] ?? [];
  assert.match(lit, / as svg\b/);
  assert.doesNotMatch(coreOnly("lit-html.js", lit), / as (?:svg|mathml)\b/);
});

test("a lit of a new form stops the build instead of being cut in the wrong place", () => {
  for (const [file, source] of sources) {
    const changed = source.replaceAll(/litHtml|litElement|reactiveElement|as css\b|_\$AU/g, "changed");
    assert.throws(() => coreOnly(file, changed), /has a new form/, file);
  }
});
