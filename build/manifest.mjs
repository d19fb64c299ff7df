/** The custom-elements manifest, for editors and catalogues: from the types, the doc blocks and the table of properties. */

import { readFileSync } from "node:fs";
import ts from "typescript-5";
import { attributeOf, CHAT, initialValue } from "../widget/element/properties.ts";
import { LAUNCHER } from "../widget/launcher/properties.ts";

const TYPES = "widget/element/public-types.ts";

const ELEMENTS = [
  {
    properties: "ChatProperties",
    table: CHAT,
    tagName: "agent-chat",
    name: "AgentChat",
    path: "widget/element/agent-chat.ts",
    // Parts and variables are described where they are.
    described: ["widget/element/agent-chat.ts", "widget/ui/screen.ts", "widget/styles/tokens.css"],
  },
  {
    properties: "LauncherProperties",
    table: LAUNCHER,
    tagName: "agent-chat-launcher",
    name: "AgentChatLauncher",
    path: "widget/launcher/launcher.ts",
    described: ["widget/launcher/launcher.ts"],
  },
];

/** The manifest as an object: https://github.com/webcomponents/custom-elements-manifest, schema 1.0.0. */
export function customElementsManifest() {
  return { schemaVersion: "1.0.0", readme: "docs/element.md", modules: ELEMENTS.map(moduleOf) };
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

function declarationOf({ properties, table, tagName, name, path, described }) {
  const tags = described.flatMap(tagsOf);
  const tagged = (wanted) => tags.filter(({ tag }) => tag === wanted).map(({ tag: _tag, ...rest }) => rest);
  const fields = ["SharedProperties", properties].flatMap((it) => membersOf(it, table));
  return {
    kind: "class",
    name,
    tagName,
    customElement: true,
    description: commentOf(find(path, ts.isClassDeclaration, name)),
    attributes: fields.flatMap(({ kind: _kind, name: fieldName, ...field }) => {
      const attribute = attributeOf(fieldName, table[fieldName] ?? {});
      return attribute ? [{ name: attribute, ...field, fieldName }] : [];
    }),
    // Properties that are not in the table are inherited from the browser.
    members: [...fields.filter((field) => field.name in table), ...membersOf(name, {})],
    events: tagged("fires"),
    slots: tagged("slot"),
    cssParts: tagged("csspart"),
    cssProperties: tagged("cssprop"),
  };
}

/** `@tag {type} name - description`, in comments of any file. */
function tagsOf(path) {
  const lines = readFileSync(path, "utf8").matchAll(
    /^ \* @(?<tag>\w+) (?:\{(?<type>[^}]*)\} )?(?<name>\S+) - (?<description>.+)$/gm,
  );
  return [...lines].map(({ groups: { type, ...rest } }) => ({ ...rest, ...(type && { type: { text: type } }) }));
}

/** The comment of a declaration, in one line. `@see` is a link to the documentation. */
function commentOf(node) {
  const text = ts.getTextOfJSDocComment(ts.getJSDocCommentsAndTags(node)[0]?.comment)?.replace(/\s+/g, " ");
  // TypeScript would read the first word of the link as a name.
  const [, link] = ts.getJSDocTags(node).flatMap((tag) => /^@see (.+)/.exec(tag.getText()) ?? []);
  return link ? `${text} See ${link}.` : text;
}

/** The class or interface of this name in a file. */
function find(path, isKind, name) {
  const { statements } = ts.createSourceFile(path, readFileSync(path, "utf8"), ts.ScriptTarget.Latest, true);
  const found = statements.find((statement) => isKind(statement) && statement.name?.text === name);
  if (!found) throw new Error(`${path} has no ${name}`);
  return found;
}

/** The members of an interface, with the defaults of a table. */
function membersOf(name, table) {
  return find(TYPES, ts.isInterfaceDeclaration, name).members.map((member) => {
    const common = { name: member.name.getText(), description: commentOf(member) };
    const type = { text: member.type.getText() };
    const row = table[common.name];
    const initial = row?.choices && { default: `"${initialValue(row)}"` };
    if (!ts.isMethodSignature(member)) {
      const readonly = member.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ReadonlyKeyword);
      return { kind: "field", ...common, type, ...initial, ...(readonly && { readonly }) };
    }
    const parameters = member.parameters.map((it) => ({ name: it.name.getText(), type: { text: it.type.getText() } }));
    return { kind: "method", ...common, parameters, return: { type } };
  });
}
