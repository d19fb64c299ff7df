/** The custom-elements manifest, for editors and catalogues: from the table of properties, the doc blocks and the types. */

import { readFileSync } from "node:fs";
import ts from "typescript-5";

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
export function customElementsManifest(tables) {
  return {
    schemaVersion: "1.0.0",
    readme: "docs/widget.md",
    modules: ELEMENTS.map((element) => moduleOf(element, tables)),
  };
}

function moduleOf({ owner, tagName, name, path, described }, tables) {
  const tags = described.flatMap((file) => tagsOf(readFileSync(file, "utf8")));
  const tagged = (tag) => tags.filter((it) => it.tag === tag).map(({ tag: _tag, ...rest }) => rest);
  const rows = tables.rowsOf(owner);
  const declaration = {
    kind: "class",
    name,
    tagName,
    customElement: true,
    description: descriptionOf(path, name),
    attributes: rows
      .map(([property, row]) => ({
        ...fieldOf(property, row, tables),
        name: tables.attributeOf(owner, property),
        fieldName: property,
      }))
      .filter((attribute) => attribute.name !== undefined),
    members: [
      ...rows
        .filter(([, { kind }]) => kind !== "inherited")
        .map(([property, row]) => ({ kind: "field", ...fieldOf(property, row, tables) })),
      ...membersOf(name, new Set(rows.map(([property]) => property))),
    ],
    events: tagged("fires"),
    slots: tagged("slot"),
    cssParts: tagged("csspart"),
    cssProperties: tagged("cssprop"),
  };
  const reference = { name, module: path };
  return {
    kind: "javascript-module",
    path,
    declarations: [declaration],
    exports: [
      { kind: "js", name, declaration: reference },
      { kind: "custom-element-definition", name: tagName, declaration: reference },
    ],
  };
}

const TYPE_OF_KIND = { boolean: "boolean", moment: "number | string | null" };

function fieldOf(name, { kind, choices }, { DOCUMENTATION }) {
  const { doc, type } = DOCUMENTATION[name];
  const text =
    kind === "choice" ? choices.map((it) => `"${it}"`).join(" | ") : (type ?? TYPE_OF_KIND[kind] ?? "string");
  return { name, description: doc, type: { text }, ...(choices && { default: `"${choices[0]}"` }) };
}

/** `@tag {type} name - description`, in comments of any file. */
function tagsOf(source) {
  const lines = source.matchAll(/^ \* @(?<tag>\w+) (?:\{(?<type>[^}]*)\} )?(?<name>\S+) - (?<description>.+)$/gm);
  return [...lines].map(({ groups: { tag, type, name, description } }) => ({
    tag,
    name,
    description,
    ...(type && { type: { text: type } }),
  }));
}

const parse = (path) => ts.createSourceFile(path, readFileSync(path, "utf8"), ts.ScriptTarget.Latest, true);
const commentOf = (node) =>
  ts.getTextOfJSDocComment(ts.getJSDocCommentsAndTags(node)[0]?.comment)?.replace(/\s+/g, " ");

function descriptionOf(path, name) {
  const found = parse(path).statements.find((it) => ts.isClassDeclaration(it) && it.name?.text === name);
  if (!found) throw new Error(`${path} has no class ${name}`);
  return commentOf(found);
}

/** What the public interface of an element has beside the properties of the table. */
function membersOf(name, known) {
  const found = parse(TYPES).statements.find((it) => ts.isInterfaceDeclaration(it) && it.name.text === name);
  if (!found) throw new Error(`${TYPES} has no interface ${name}`);
  return found.members
    .map((member) => {
      const common = { name: member.name.getText(), description: commentOf(member) };
      const type = { text: member.type.getText() };
      if (!ts.isMethodSignature(member)) return { kind: "field", ...common, type, readonly: true };
      const parameters = member.parameters.map((it) => ({
        name: it.name.getText(),
        type: { text: it.type.getText() },
      }));
      return { kind: "method", ...common, parameters, return: { type } };
    })
    .filter((member) => !known.has(member.name));
}
