/** The custom-elements manifest, for editors and catalogues: made of the elements' doc blocks and public members. */

import { readFileSync } from "node:fs";

const ELEMENTS = [
  {
    path: "widget/agent-chat.ts",
    base: "widget/chat-element.ts",
    // Parts and variables are described where they are.
    look: ["widget/views/frame.ts", "widget/styles/tokens.styles.ts"],
  },
  { path: "widget/agent-chat-launcher.ts", base: "widget/chat-element.ts" },
];

/** The manifest as an object: https://github.com/webcomponents/custom-elements-manifest, schema 1.0.0. */
export function customElementsManifest() {
  return {
    schemaVersion: "1.0.0",
    readme: "docs/widget.md",
    modules: ELEMENTS.map(moduleOf),
  };
}

function moduleOf({ path, base, look = [] }) {
  const source = readFileSync(path, "utf8");
  const [whole, comment, name] = /\/\*\*\n((?: \*.*\n)+) \*\/\nexport class (\w+) extends/.exec(source) ?? [];
  if (!whole) throw new Error(`${path} has no element with a doc block`);
  const text = comment.replace(/^ \* ?/gm, "");
  const described = [text, ...look.map((file) => readFileSync(file, "utf8").replace(/^ \* /gm, ""))];
  const looks = described.join("\n");
  const tagName = /^@tagname (\S+)/m.exec(text)?.[1];
  const inherited = membersOf(readFileSync(base, "utf8"));
  const own = membersOf(source.slice(source.indexOf(whole)));
  const declaration = {
    kind: "class",
    name,
    tagName,
    customElement: true,
    description: text.slice(0, text.indexOf("\n@")).trim(),
    attributes: tagsOf(text, "attr").map((it) => ({ ...it, type: { text: it.type } })),
    members: [...inherited, ...own],
    events: tagsOf(text, "fires").map((it) => ({ ...it, type: { text: it.type } })),
    slots: tagsOf(text, "slot"),
    cssParts: tagsOf(looks, "csspart"),
    cssProperties: tagsOf(looks, "cssprop"),
  };
  const exported = { name, module: path };
  return {
    kind: "javascript-module",
    path,
    declarations: [declaration],
    exports: [
      { kind: "js", name, declaration: exported },
      { kind: "custom-element-definition", name: tagName, declaration: exported },
    ],
  };
}

/** `@tag {type} name - description`. */
function tagsOf(text, tag) {
  const lines = text.matchAll(new RegExp(`^@${tag} (?:\\{([^}]*)\\} )?(\\S+) - (.+)$`, "gm"));
  return [...lines].map(([, type, name, description]) => ({
    name,
    description,
    ...(type === undefined ? {} : { type }),
  }));
}

/** What stands in the body of the class without a `#`, `protected`, `override`, `static` or `@internal`. */
function membersOf(source) {
  const described = String.raw`(?:^ {2}\/\*\* (?<about>[^\n]*?) \*\/\n)?`;
  const field = new RegExp(
    `${described}^ {2}(?<name>[a-z]\\w*)(?:: (?<type>[^=;\\n]+?))?(?: = (?<initial>[^\\n]+))?;$`,
    "gm",
  );
  const getter = new RegExp(`${described}^ {2}get (?<name>\\w+)\\(\\): (?<type>[^{]+) \\{$`, "gm");
  const method = new RegExp(
    `${described}^ {2}(?:async )?(?<name>[a-z]\\w*)\\((?<parameters>[^)]*)\\): (?<type>[^{]+) \\{$`,
    "gm",
  );
  const fields = [...source.matchAll(field)].map(({ groups }) => fieldOf(groups));
  const getters = [...source.matchAll(getter)].map(({ groups }) => ({
    ...fieldOf(groups),
    readonly: true,
  }));
  const methods = [...source.matchAll(method)].map(({ groups }) => methodOf(groups));
  return [...fields, ...getters, ...methods];
}

function fieldOf({ name, about, type, initial }) {
  return {
    kind: "field",
    name,
    ...(about ? { description: about } : {}),
    type: { text: type ?? typeOf(initial) },
    ...(initial && !/[.(]/.test(initial) ? { default: initial } : {}),
  };
}

function typeOf(initial = "") {
  return /^(?:true|false)$/.test(initial) ? "boolean" : "string";
}

function methodOf({ name, about, parameters, type }) {
  const list = parameters === "" ? [] : parameters.split(", ");
  return {
    kind: "method",
    name,
    ...(about ? { description: about } : {}),
    parameters: list.map((parameter) => {
      const [, parameterName, text] = /^(\w+)\??: (.+)$/.exec(parameter) ?? [];
      return { name: parameterName, type: { text } };
    }),
    return: { type: { text: type } },
  };
}
