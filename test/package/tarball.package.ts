/** The package as users get it: packed, installed into an empty folder, compiled and started. Never the sources. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import ts from "typescript-5";
import { REPOSITORY } from "../support/command.ts";
import { ask, serve } from "../support/document-commands.ts";
import { listen } from "../support/listen.ts";
import { findBlock, readMarkdown } from "../support/markdown-file.ts";
import { twice } from "../support/twice.ts";

const run = promisify(execFile);
const work = mkdtempSync(join(tmpdir(), "parley-package-"));
after(() => rmSync(work, { recursive: true, force: true }));

const readme = readMarkdown("README.md");
const agentSource = findBlock(readme, "ts", "orderStatus");

/** Runs npm like a user, without the test runner's variables. */
async function npm(folder: string, ...args: string[]): Promise<{ stdout: string; stderr: string }> {
  const { NODE_OPTIONS: _options, NODE_TEST_CONTEXT: _context, ...env } = process.env;
  return run("npm", [...args, "--loglevel=notice"], { cwd: folder, env, maxBuffer: 1 << 26 });
}

/** Warnings about the package, without those about this machine's npm settings. */
function warnings({ stdout, stderr }: { stdout: string; stderr: string }): string[] {
  const lines = `${stdout}\n${stderr}`.split("\n");
  return lines.filter((line) => /\bwarn|deprecated/i.test(line) && !/Unknown \w+ config/.test(line));
}

// `PREPARED`: dist/ exists with its declarations, and must not be rebuilt while other tests use it.
const scripts = process.env.PREPARED ? ["--ignore-scripts"] : [];
const packed = await npm(REPOSITORY, "pack", "--json", "--pack-destination", work, ...scripts);
const [listing] = JSON.parse(packed.stdout.slice(packed.stdout.indexOf("[\n")));
const tarball = join(work, listing.filename);
const files: string[] = listing.files.map(({ path }: { path: string }) => path);

/** A registry with our package that redirects npm to the real one for all others. */
const others = (await npm(work, "config", "get", "registry")).stdout.trim();
const manifest = JSON.parse(readMarkdown("package.json"));
const registry = createServer((request, response) => {
  const path = request.url ?? "/";
  if (path === `/${manifest.name}.tgz`) {
    response.end(readFileSync(tarball));
  } else if (path === `/${manifest.name}`) {
    const dist = { tarball: `${registryUrl}${manifest.name}.tgz`, integrity: listing.integrity };
    const versions = { [manifest.version]: { ...manifest, dist } };
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ name: manifest.name, "dist-tags": { latest: manifest.version }, versions }));
  } else {
    response.writeHead(302, { location: new URL(path.slice(1), others).href }).end();
  }
});
await once(registry.listen(0, "127.0.0.1"), "listening");
const registryUrl = `http://127.0.0.1:${(registry.address() as AddressInfo).port}/`;
after(() => registry.close());

const project = join(work, "project");
mkdirSync(project);
const installation = await twice(() => npm(project, "install", manifest.name, "--registry", registryUrl));
/** npm's files, before tests change the project. */
const manifests = ["package.json", "package-lock.json"].map(
  (name) => [name, readFileSync(join(project, name))] as const,
);
writeFileSync(join(project, "agent.ts"), agentSource);

test("the tarball holds what runs, the types and the licence, and nothing else", (t) => {
  t.diagnostic(
    `${files.length} files, ${Math.round(listing.size / 1000)} kB packed, ${Math.round(listing.unpackedSize / 1000)} kB unpacked`,
  );
  const needed = [
    "package.json",
    "README.md",
    "LICENSE",
    "dist/cli.js",
    "dist/parley-agent.js",
    "dist/mount.js",
    "dist/custom-elements.json",
    "dist/widget/browser.js",
    "dist/widget/server.js",
    "dist/public/widget.js",
    "dist/types/parley-agent.d.ts",
    "dist/types/widget.d.ts",
  ];
  for (const path of needed) assert.ok(files.includes(path), path);
  const allowed = /^(?:package\.json|README\.md|LICENSE|dist\/(?!.*\.map$))/;
  assert.deepEqual(
    files.filter((path) => !allowed.test(path)),
    [],
  );
  assert.deepEqual(files.filter((path) => path.startsWith("dist/types/")).sort(), [
    "dist/types/mount.d.ts",
    "dist/types/parley-agent.d.ts",
    "dist/types/preact.d.ts",
    "dist/types/react.d.ts",
    "dist/types/solid.d.ts",
    "dist/types/svelte.d.ts",
    "dist/types/vue.d.ts",
    "dist/types/widget.d.ts",
  ]);
});

test("it installs into an empty folder without a warning and without building anything", () => {
  assert.deepEqual(warnings(installation), []);
  assert.match(installation.stdout, /added \d+ packages/);
});

test("publint has nothing to say", async () => {
  const { publint } = await import("publint");
  const folder = join(project, "node_modules/parley-agent");
  const { messages } = await publint({ pkgDir: folder, pack: false, strict: true });
  assert.deepEqual(messages, []);
});

test("are-the-types-wrong has nothing to say of a package of ES modules", async () => {
  const attw = join(REPOSITORY, "node_modules/@arethetypeswrong/cli/dist/index.js");
  const args = [attw, tarball, "--profile", "esm-only", "--no-emoji", "--no-color"];
  await run(process.execPath, args).catch(({ stdout }) => assert.fail(stdout));
});

/** Other packages that the consumer has; the tarball contains none of them. */
for (const name of ["zod", "@types/node", "@types/react", "preact", "solid-js", "tsx"]) {
  const link = join(project, "node_modules", name);
  rmSync(link, { recursive: true, force: true });
  mkdirSync(dirname(link), { recursive: true });
  symlinkSync(join(REPOSITORY, "node_modules", name), link);
}
cpSync(join(REPOSITORY, "test/package/consumer"), project, { recursive: true });

/**
 * A TypeScript version that users have, and its module resolutions. The older one takes seconds per program, so it
 * reads each kind of file once, while the newest reads all of them in every way.
 */
const PROGRAMS = [
  { name: "TypeScript 5.9", compiler: "typescript-5", agents: ["nodenext"], pages: ["bundler"], servers: ["node16"] },
  {
    name: "TypeScript 7",
    compiler: "typescript",
    agents: ["nodenext", "bundler"],
    pages: ["nodenext", "bundler"],
    servers: ["node16", "bundler"],
  },
];
const STRICT = {
  ...{ target: "ES2022", strict: true, noEmit: true, types: [] },
  // Checks our declarations and those they are used with, but not TypeScript's own.
  ...{ skipLibCheck: false, skipDefaultLibCheck: true },
};

/** Compiles files of the project with its own tsconfig.json. @throws what the compiler has found */
async function compile(compiler: string, files: string[], compilerOptions: object): Promise<void> {
  const config = join(project, `tsconfig.${Object.values(compilerOptions).join("-")}.json`);
  writeFileSync(config, JSON.stringify({ compilerOptions: { ...STRICT, ...compilerOptions }, files }));
  const bin = join(REPOSITORY, "node_modules", compiler, "bin/tsc");
  await run(process.execPath, [bin, "-p", config], { cwd: project }).catch(({ stdout }) => {
    assert.fail(stdout);
  });
}

/** Module options of a tsconfig.json. */
const resolve = (how: string) => (how === "bundler" ? { module: "esnext", moduleResolution: how } : { module: how });

for (const { name, compiler, agents, pages, servers } of PROGRAMS) {
  for (const how of agents) {
    test(`${name}, ${how}: the README's agent compiles where no package.json speaks of modules, also without @types/node`, async () => {
      await compile(compiler, ["agent.ts"], resolve(how));
      const types = join(project, "node_modules/@types/node");
      renameSync(types, `${types}-away`);
      await compile(compiler, ["agent.ts"], resolve(how)).finally(() => renameSync(`${types}-away`, types));
    });
  }

  for (const how of pages) {
    test(`${name}, ${how}: tools know the types of their arguments, a site the elements without Lit, and mistakes are found`, async () => {
      writeFileSync(join(project, "package.json"), '{"type":"module"}');
      await compile(compiler, ["types.ts", "site.ts"], { ...resolve(how), lib: ["ES2022", "DOM"] });
      rmSync(join(project, "package.json"));
    });
  }

  for (const how of servers) {
    test(`${name}, ${how}: a server of one's own compiles, and mistakes are found`, async () => {
      writeFileSync(join(project, "package.json"), '{"type":"module"}');
      await compile(compiler, ["server.ts"], resolve(how));
      rmSync(join(project, "package.json"));
    });
  }

  for (const framework of ["react", "preact", "solid-js"]) {
    test(`${name}: templates of ${framework} know the elements, and refuse a wrong word`, async () => {
      const entry = framework.replace("-js", "");
      const page = entry === "solid" ? "solid/page.tsx" : "page.tsx";
      const folder = join(project, entry);
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, "types.ts"), `import type {} from "parley-agent/widget/${entry}";\n`);
      for (const file of [page, "mistakes.tsx"]) {
        const source = readFileSync(join(REPOSITORY, "test/fixtures/jsx", file), "utf8");
        const ofPackage = source.replace(/"[./]+widget\/element\/jsx\/(\w+)\.ts"/, '"parley-agent/widget/$1"');
        writeFileSync(join(folder, file.replace("solid/", "")), ofPackage);
      }
      const sources = ["types.ts", "page.tsx", "mistakes.tsx"].map((file) => `${entry}/${file}`);
      await compile(compiler, sources, {
        jsx: entry === "solid" ? "preserve" : "react-jsx",
        jsxImportSource: framework,
        ...resolve("bundler"),
      });
    });
  }
}

test("the declarations of parley-agent/server name only what hosts pass and get", () => {
  const text = readFileSync(join(project, "node_modules/parley-agent/dist/types/mount.d.ts"), "utf8");
  assert.deepEqual(text.match(/(?<=from ')[^']+/g), ["node:http", "node:stream", "./parley-agent.js"]);
  const declared = [...text.matchAll(/^(?:export )?(?:declare )?(?:interface|type|function|class|const) (\w+)/gm)];
  assert.deepEqual(
    declared.map(([, one]) => one),
    ["AgentExports", "ParleyOptions", "Parley", "createParley"],
  );
});

test("a host imports parley-agent/server from the package, and its agent answers", async (t) => {
  const { createParley } = await import(
    pathToFileURL(join(project, "node_modules/parley-agent", manifest.exports["./server"].default)).href
  );
  const agent = { name: "Acme", model: "demo" };
  const parley = await createParley({ agent, basePath: "/support", settings: { PARLEY_LOG: "off" } });
  t.after(() => parley.close());
  const url = await listen(t, createServer(parley.handle));
  const info = await (await fetch(`${url}/support/api/info`)).json();
  assert.equal(info.name, "Acme");
});

test("an editor offers models, fields and the arguments of a tool", () => {
  // Reuses the parsed standard library for all three questions.
  const parsed = ts.createDocumentRegistry();
  const offered = (source: string): string[] => {
    const file = join(project, "edited.ts");
    const position = source.indexOf("|");
    const text = source.replace("|", "");
    const host: ts.LanguageServiceHost = {
      getCompilationSettings: () => ({ module: ts.ModuleKind.NodeNext, strict: true }),
      getScriptFileNames: () => [file],
      getScriptVersion: (path) => (path === file ? text : ""),
      getScriptSnapshot: (path) => {
        const content = path === file ? text : ts.sys.readFile(path);
        return content === undefined ? undefined : ts.ScriptSnapshot.fromString(content);
      },
      getCurrentDirectory: () => project,
      getDefaultLibFileName: ts.getDefaultLibFilePath,
      fileExists: ts.sys.fileExists,
      readFile: ts.sys.readFile,
      directoryExists: ts.sys.directoryExists,
      getDirectories: ts.sys.getDirectories,
    };
    const completions = ts.createLanguageService(host, parsed).getCompletionsAtPosition(file, position, {});
    return (completions?.entries ?? []).map(({ name }) => name);
  };
  const imports = 'import { defineAgent, tool } from "parley-agent";\n';
  const models = offered(`${imports}defineAgent({ name: "A", model: "|" });`);
  for (const name of ["demo", "openai/gpt-5.2", "anthropic/claude-sonnet-5"]) assert.ok(models.includes(name), name);
  const fields = offered(`${imports}defineAgent({ name: "A", model: "demo", | });`);
  for (const name of ["instructions", "tools", "chat"]) assert.ok(fields.includes(name), name);
  const schema = '{ type: "object", properties: { order: { type: "string" } }, required: ["order"] }';
  const args = offered(
    `${imports}tool({ name: "a", description: "b", parameters: ${schema}, execute: (args) => args.| });`,
  );
  assert.deepEqual(args, ["order"]);
});

test("a project unit-tests its agent without a server", async () => {
  writeFileSync(join(project, "agent.ts"), agentSource.replace("const orderStatus", "export const orderStatus"));
  const { NODE_TEST_CONTEXT: _context, ...env } = process.env;
  const args = ["--import", "tsx", "--test", "--test-reporter=spec", "unit-test.ts"];
  const { stdout } = await run(process.execPath, args, { cwd: project, env });
  assert.match(stdout, /pass 1\n/);
});

test("npx parley start serves the agent.ts of the folder, and it answers", async (t) => {
  const { url } = await serve(t, "npx parley start", project);
  assert.match(await (await ask(url, "What is my order status?")).text(), /on its way/);
  const page = await fetch(url);
  assert.match(await page.text(), /<agent-chat/);
  assert.match(await (await fetch(new URL("widget.js", url))).text(), /agent-chat/);
});

/** Blocks that need a registry, so test/contract/docs.test.ts does not run them. */
const deploying = readMarkdown("docs/deploying.md");

test("the command is also called parley-agent", async () => {
  const { stdout } = await run("npx", ["parley-agent", "--version"], { cwd: project });
  assert.equal(stdout.trim(), manifest.version);
});

test("docs/deploying.md: a clone is built as npm builds one, and can be installed before its sources are there", async () => {
  const [install = "", build = ""] = findBlock(deploying, "sh", "npm ci --ignore-scripts").trim().split(" && ");
  const [, step] = /^RUN (npm ci\b.*)$/m.exec(readMarkdown("examples/deploy/Dockerfile")) ?? [];
  assert.equal(step, install);
  const folder = join(work, "clone");
  await run("git", ["clone", "--quiet", "--no-checkout", REPOSITORY, folder]);
  await run("git", ["checkout", "HEAD", "package.json", "package-lock.json"], { cwd: folder });
  // The repository's `npm ci` has installed the same packages.
  const planned = await twice(() => npm(folder, ...install.split(" ").slice(1), "--dry-run"));
  assert.match(planned.stdout, /added \d+ packages/);
  // npm itself runs it in clones, and in a folder of its own for repository URLs: see the last test.
  assert.ok(manifest.scripts.prepare.startsWith(build.replace("run", "run --silent")), build);
});

test("the image's step of npm installs the package with the client of Redis", async () => {
  const dockerfile = readMarkdown("examples/deploy/Dockerfile");
  const [, install] = /^RUN npm pack --silent && npm (install .*)$/m.exec(dockerfile) ?? assert.fail();
  const image = join(work, "image");
  const local: Record<string, string> = { "/parley": image, [`./${manifest.name}-*.tgz`]: tarball };
  const words = (install ?? "").split(" ").map((word) => local[word] ?? word);
  await twice(() => npm(work, ...words));
  assert.ok(ts.sys.fileExists(join(image, "node_modules/@redis/client/package.json")));
  const [, command] = /^ENTRYPOINT \["node", "\/parley\/(.*)"\]$/m.exec(dockerfile) ?? assert.fail();
  const { stdout } = await run("node", [join(image, command ?? ""), "--version"]);
  assert.equal(stdout.trim(), manifest.version);
});

test("the steps of the image for an agent's own folder install it, start it and find it healthy", async (t) => {
  const steps = readMarkdown("examples/deploy/agent.Dockerfile");
  const step = (pattern: RegExp) => pattern.exec(steps)?.[1] ?? assert.fail(String(pattern));
  const image = join(work, "agent-image");
  mkdirSync(image);
  assert.equal(step(/^COPY (package\S+ \S+) \.\/$/m), manifests.map(([name]) => name).join(" "));
  for (const [name, content] of manifests) writeFileSync(join(image, name), content);
  await twice(() => npm(image, ...step(/^RUN npm (.*)$/m).split(" "), "--registry", registryUrl));
  step(/^COPY (\.) \.$/m);
  writeFileSync(join(image, "agent.ts"), agentSource);
  const [node, ...command] = JSON.parse(step(/^CMD (.*)$/m));
  const { url } = await serve(t, `HOST=127.0.0.1 ${[node, ...command].join(" ")}`, image);
  const check: string[] = JSON.parse(step(/HEALTHCHECK .* CMD (.*)$/m));
  await run(process.execPath, check.slice(1), { env: { PORT: new URL(url).port } });
});

test("installed by the repository's URL it is built, and serves", async () => {
  const folder = join(work, "by-url");
  mkdirSync(folder);
  await twice(() => npm(folder, "install", `git+file://${REPOSITORY.replace(/\/$/, "")}`));
  const { stdout } = await run("npx", ["parley", "--version"], { cwd: folder });
  assert.equal(stdout.trim(), manifest.version);
  const types = join(folder, "node_modules/parley-agent/dist/types/parley-agent.d.ts");
  assert.ok(ts.sys.fileExists(types), types);
});
