/** The custom-elements manifest, for editors and catalogues: from the table of properties, the doc blocks and the types. */

import { readFileSync } from "node:fs";
import ts from "typescript-5";
import { attributeOf, DOCUMENTATION, rowsOf } from "../widget/element/properties.ts";
import { typeOf } from "./docs.ts";

const TYPES = "widget/element/public-types.ts";

const ELEMENTS = [
  {
    owner: "chat",
    tagName: "agent-chat",
    name: "AgentChat",
    path: "widget/element/agent-chat.ts",
    // Parts and variables are described where they are.
    described: ["widget/element/agent-chat.ts", "widget/ui/screen.ts", "widget/styles/tokens.css"],
  },
  {
    owner: "launcher",
    tagName: "agent-chat-launcher",
    name: "AgentChatLauncher",
    path: "widget/launcher/launcher.ts",
    described: ["widget/launcher/launcher.ts"],
  },
];

/** The manifest as an object: https://github.com/webcomponents/custom-elements-manifest, schema 1.0.0. */
export function customElementsManifest() {
  return { schemaVersion: "1.0.0", readme: "docs/widget.md", modules: ELEMENTS.map(moduleOf) };
}

function moduleOf(element) {
  const { tagName, name, path } = element;
  const declaration = { name, module: path };
  return {
    kind: "javascript-module",
    path,
    declarations: [declarationOf(element)],
    exports: [
      { kind: "js", name, declaration },
      { kind: "custom-element-definition", name: tagName, declaration },
    ],
  };
}

function declarationOf({ owner, tagName, name, path, described }) {
  const tags = described.flatMap(tagsOf);
  const tagged = (wanted) => tags.filter(({ tag }) => tag === wanted).map(({ tag: _tag, ...rest }) => rest);
  const rows = rowsOf(owner);
  const attributes = rows.map(([property, row]) => ({
    ...fieldOf(property, row),
    name: attributeOf(owner, property),
    fieldName: property,
  }));
  const own = rows.filter(([, { kind }]) => kind !== "inherited");
  return {
    kind: "class",
    name,
    tagName,
    customElement: true,
    description: commentOf(find(path, ts.isClassDeclaration, name)),
    attributes: attributes.filter((attribute) => attribute.name !== undefined),
    members: [...own.map(([property, row]) => ({ kind: "field", ...fieldOf(property, row) })), ...membersOf(name)],
    events: tagged("fires"),
    slots: tagged("slot"),
    cssParts: tagged("csspart"),
    cssProperties: tagged("cssprop"),
  };
}

function fieldOf(name, row) {
  const text = typeOf(name, row);
  const initial = row.choices && { default: `"${row.choices[0]}"` };
  return { name, description: DOCUMENTATION[name].doc, type: { text }, ...initial };
}

/** `@tag {type} name - description`, in comments of any file. */
function tagsOf(path) {
  const lines = readFileSync(path, "utf8").matchAll(
    /^ \* @(?<tag>\w+) (?:\{(?<type>[^}]*)\} )?(?<name>\S+) - (?<description>.+)$/gm,
  );
  return [...lines].map(({ groups: { type, ...rest } }) => ({ ...rest, ...(type && { type: { text: type } }) }));
}

const commentOf = (node) =>
  ts.getTextOfJSDocComment(ts.getJSDocCommentsAndTags(node)[0]?.comment)?.replace(/\s+/g, " ");

/** The class or interface of this name in a file. */
function find(path, isKind, name) {
  const { statements } = ts.createSourceFile(path, readFileSync(path, "utf8"), ts.ScriptTarget.Latest, true);
  const found = statements.find((statement) => isKind(statement) && statement.name?.text === name);
  if (!found) throw new Error(`${path} has no ${name}`);
  return found;
}

/** What the public interface of an element has beside the properties of the table. */
function membersOf(name) {
  return find(TYPES, ts.isInterfaceDeclaration, name).members.map((member) => {
    const common = { name: member.name.getText(), description: commentOf(member) };
    const type = { text: member.type.getText() };
    if (!ts.isMethodSignature(member)) return { kind: "field", ...common, type, readonly: true };
    const parameters = member.parameters.map((it) => ({ name: it.name.getText(), type: { text: it.type.getText() } }));
    return { kind: "method", ...common, parameters, return: { type } };
  });
}
