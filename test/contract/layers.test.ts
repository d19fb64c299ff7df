/** Compares the tables of rooms in docs/architecture.md with all imports. */

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { test } from "node:test";

const IMPORT = /(?:^|\n)\s*(?:import|export)\b[^;]*?\bfrom\s*"([^"]+)"|\bimport\s*\(?\s*"([^"]+)"/g;

/**
 * The imports of each `.ts` file below these folders, including type imports and dynamic ones. Relative imports, also of style
 * sheets, are paths from the repository's root; packages are names.
 */
function readImports(folders: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const files = folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts"))
      .map((name) => posix.join(folder, name)),
  );
  return new Map(files.map((file) => [file, importsOf(file)]));
}

function importsOf(file: string): string[] {
  return [...readFileSync(file, "utf8").matchAll(IMPORT)].map(([, from, called]) => {
    const target = from ?? called ?? "";
    return target.startsWith(".") ? join(dirname(file), target) : target;
  });
}

const GRAPH = readImports(["server", "widget"]);

/** The rooms that each room may import, according to the document. */
function readRooms(): Map<string, string[]> {
  const rooms = new Map<string, string[]>();
  const rows = readFileSync("docs/architecture.md", "utf8").matchAll(
    /^\| `((server|widget)\/[^`]*)` *\|[^|]*\|([^|]*)\|$/gm,
  );
  for (const [, room = "", root = "", cell = ""] of rows) {
    const text = cell.replaceAll("`", "").trim();
    const named = text === "nothing" ? [] : text.split(/,\s*/);
    const above = [...rooms.keys()].filter((other) => other.startsWith(`${root}/`));
    rooms.set(room, text === "all of the above" ? above : named.map((name) => fullName(name, root)));
  }
  return rooms;
}

/** In rooms of the server, `protocol` means `server/protocol`; rooms of the element use the full name. */
function fullName(name: string, root: string): string {
  return name.startsWith("server/") ? name : `${root}/${name}`;
}

/** The room of a file: its own row, its folder's, or that of files outside of folders. */
function roomOf(file: string, rooms: ReadonlyMap<string, unknown>): string {
  if (rooms.has(file)) return file;
  const [root = "", folder = "", ...inside] = file.split("/");
  const room = inside.length === 0 ? `${root}/*.ts` : `${root}/${folder}`;
  assert.ok(rooms.has(room), `${file} is in no room of docs/architecture.md`);
  return room;
}

const isPackage = (target: string) => !/^(?:server|widget)\//.test(target);

test("the document's tables name every folder, and only folders that are there", () => {
  const rooms = readRooms();
  assert.ok(rooms.size >= 24);
  for (const folder of rooms.keys()) assert.ok(existsSync(folder.replace("/*.ts", "")), folder);
  for (const file of GRAPH.keys()) roomOf(file, rooms);
});

test("every import stays in its room or goes to one that the tables allow", () => {
  const rooms = readRooms();
  const wrong: string[] = [];
  for (const [file, targets] of GRAPH) {
    const room = roomOf(file, rooms);
    for (const target of targets.filter((name) => !isPackage(name))) {
      const other = roomOf(target, rooms);
      if (other !== room && !rooms.get(room)?.includes(other)) {
        wrong.push(`${file} imports ${target}`);
      }
    }
  }
  assert.deepEqual(wrong, []);
});

test("nothing lies flat in server/ but the entry points and their errors", () => {
  const flat = readdirSync("server").filter((name) => name.endsWith(".ts"));
  assert.deepEqual(flat.sort(), ["errors.ts", "mount.ts", "parley-agent.ts", "process-life.ts", "server.ts"]);
});

test("nothing lies flat in widget/ but the entries and the page", () => {
  const flat = readdirSync("widget").filter((name) => name.includes("."));
  assert.deepEqual(flat.sort(), ["chat.ts", "elements.ts", "loader.ts", "page.html", "page.ts"]);
});

/** The dynamic imports in the files of a folder, or in one file. */
function lazyImports(folder: string): string[] {
  return [...GRAPH.keys(), "cli.ts"]
    .filter((file) => file.startsWith(folder))
    .flatMap((file) => [...readFileSync(file, "utf8").matchAll(/(?<!typeof )\bimport\("([^"]+)"\)/g)])
    .map(([, target = ""]) => target);
}

test("an import while the server runs is for what most installations never need", () => {
  for (const target of [...lazyImports("server/"), ...lazyImports("cli.ts")]) {
    assert.match(
      target,
      /^\.\/(?:ai-sdk|anthropic|bedrock|chat-completions|demo|gemini|openai|redis)\/|\/(?:fallbacks|hosted\/source|mcp\/servers|routes\/identity|observe\/(?:tracing|worker-metrics)|commands\/(?:dev|help|npm)|workers|project\/(?:demo-agent|process-memory))\.ts$|^\.\/agent\/(?:approvals|decisions|hook-queue|owners-page|prices)\.ts$|^\.\/(?:approvals|decisions|sources|tools|upstream|near-miss|ag-ui-thread|responses|feedback|openapi|openai|openai-messages|mcp|mcp-messages)\.ts$|^jiti$/,
      target,
    );
  }
});

test("an import while the chat runs is for what most chats never need, or not before the first message", () => {
  const targets = lazyImports("widget/");
  assert.ok(targets.length > 10);
  for (const target of targets) {
    assert.match(
      target,
      /\/(?:add-part-texts|all-conversations|alternatives|approval|argument-fields|check|clipboard|code-blocks|edit-in-place|highlight|footnote-list|feedback|message-fold|lightbox|owner|files|file-notes|key-prompt|read-file|export|http|identity|indexed-db|kept-files|mathematics|send-queued|shrink|sign-in|site-diagnosis|sources|steps|conversation-list|pending|plain-question|late-styles|ratings|read-row|talk|warnings|ways-on)\.ts$|^\.\/launcher\/(?:greeting|panel)\.ts$|^\.\/dev\/bar\.ts$|^\.\/locales\/[a-z]+\.ts$/,
      target,
    );
  }
});

/** The files on the first import cycle; `undefined` if there is none. */
function findCircle(graph: ReadonlyMap<string, readonly string[]>): string[] | undefined {
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): string[] | undefined => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (done.has(file)) return undefined;
    for (const target of graph.get(file) ?? []) {
      const circle = visit(target, [...path, file]);
      if (circle !== undefined) return circle;
    }
    done.add(file);
    return undefined;
  };
  for (const file of graph.keys()) {
    const circle = visit(file, []);
    if (circle !== undefined) return circle;
  }
  return undefined;
}

test("no file imports in a circle, not even for types", () => {
  assert.equal(findCircle(GRAPH), undefined);
});

test("every relative import names a file that is there, with its ending", () => {
  for (const [file, targets] of GRAPH) {
    for (const target of targets.filter((name) => !isPackage(name))) {
      assert.ok(/\.(?:ts|css|woff2)$/.test(target) && existsSync(target), `${file} imports ${target}`);
    }
  }
});

test("the protocol imports no package and no part of Node: both sides share it", () => {
  for (const [file, targets] of GRAPH) {
    if (file.startsWith("server/protocol/")) assert.deepEqual(targets.filter(isPackage), [], file);
  }
});

test("conversations, session and transport draw nothing: they import no package", () => {
  for (const [file, targets] of GRAPH) {
    if (/^widget\/(?:conversations|session|transport)\//.test(file))
      assert.deepEqual(targets.filter(isPackage), [], file);
  }
});

test("the button of a launcher and its bubble, which are bundled apart, have no Lit: a page that trusts it once would refuse the chat's", () => {
  const needed = new Set(["widget/launcher/launcher.ts", "widget/launcher/greeting.ts"]);
  for (const file of needed) {
    const code = readFileSync(file, "utf8");
    for (const [, target = ""] of code.matchAll(/^import (?!type )[^;]*?from "([^"]+)"/gm)) {
      assert.ok(target.startsWith("."), `${file} imports ${target}`);
      if (target.endsWith(".ts")) needed.add(join(dirname(file), target));
    }
  }
});

/** The files that a client outside of a page needs: conversation, run, and connection. */
const CLIENT = ["conversations/chat-session", "conversations/reconnect-policy", "session/server", "transport/fallback"];

test("a conversation and its connection need nothing of a page: neither its document nor its storage", () => {
  const needed = new Set(CLIENT.map((name) => `widget/${name}.ts`));
  for (const file of needed) for (const target of GRAPH.get(file) ?? []) needed.add(target);
  const others = [...needed].filter(
    (file) => !/^server\/protocol\/|^widget\/(?:conversations|session|transport)\//.test(file),
  );
  assert.deepEqual(others, []);
  for (const file of needed) {
    const code = readFileSync(file, "utf8").replaceAll(/\/\*.*?\*\/|\/\/[^\n]*/gs, "");
    assert.doesNotMatch(code, /\b(?:window|document|location|navigator|(?:local|session)Storage|indexedDB)\b/, file);
  }
});

test("the widget imports nothing of Node", () => {
  for (const [file, targets] of GRAPH) {
    if (!file.startsWith("widget/")) continue;
    assert.deepEqual(
      targets.filter((target) => target.startsWith("node:")),
      [],
      file,
    );
  }
});

test("every package that server and widget import is one of package.json, and docs/architecture.md gives the reason", () => {
  const {
    dependencies,
    devDependencies,
    peerDependencies,
    name: own,
  } = JSON.parse(readFileSync("package.json", "utf8"));
  const known = { ...dependencies, ...devDependencies, ...peerDependencies };
  const architecture = readFileSync("docs/architecture.md", "utf8");
  for (const [file, targets] of GRAPH) {
    // These are types for the page's frameworks, which the page installs.
    if (file.startsWith("widget/element/jsx/")) continue;
    for (const target of targets.filter((name) => isPackage(name) && !name.startsWith("node:"))) {
      const [first = "", second = ""] = target.split("/");
      const name = first.startsWith("@") ? `${first}/${second}` : first;
      // The demo's Markdown contains the package's own name, in a project's code.
      if (name === own) continue;
      assert.ok(name in known, `${file} imports ${name}`);
      assert.ok(architecture.includes(`\`${name}\``), `docs/architecture.md does not name ${name}`);
    }
  }
});

test("the command imports the server only", () => {
  for (const target of importsOf("cli.ts")) assert.match(target, /^(?:node:|server\/)/);
});

test("the graph sees type imports, dynamic ones, re-exports and style sheets", () => {
  const found = GRAPH.get("server/project/load-project.ts") ?? [];
  assert.ok(found.includes("jiti"));
  assert.ok(GRAPH.get("server/parley-agent.ts")?.includes("server/agent/define.ts"));
  assert.ok(GRAPH.get("widget/ui/talk.ts")?.includes("widget/styles/message.css"));
  assert.ok(GRAPH.get("server/routes/service.ts")?.includes("server/runs/run-registry.ts"));
});
