/** What the build shortens must be names that nobody reads but the files that are built together. */

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import { shortened } from "../../build/short-names.mjs";
import { launchBrowser } from "../support/browser.ts";

const read = (path: string) => readFileSync(path, "utf8");

const sources = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => ({ path: `${folder}/${name}`, text: read(`${folder}/${name}`) }));

/** Fields that interfaces and types of a file name. */
const fieldsOf = (text: string) =>
  [...text.matchAll(/^\s+(?:readonly )?"?(\w+)"?\??(?:[:(<]|,$)/gm)].map(([, name = ""]) => name);

/** Every name that a browser's objects, or JavaScript's own, have as a property. */
function namesOfThePlatform(): Set<string> {
  const types = createRequire(import.meta.resolve("typescript/package.json"));
  const { optionalDependencies = {} } = types("./package.json");
  const names = new Set<string>();
  const here = Object.keys(optionalDependencies).find((name) => name.endsWith(`${process.platform}-${process.arch}`));
  assert.ok(here, "the compiler's package for this machine");
  const folder = `${types.resolve(`${here}/package.json`).replace(/package\.json$/, "")}lib/`;
  for (const file of readdirSync(folder).filter((name) => /^lib\..*\.d\.ts$/.test(name))) {
    const declared = /^\s+(?:readonly |get |set |static )*"?([\w$]+)"?\??[(:<]/gm;
    for (const [, name = ""] of read(folder + file).matchAll(declared)) names.add(name);
  }
  return names;
}

/** Name by name, where it is read by somebody else. */
const others: readonly (readonly [who: string, names: () => Iterable<string>])[] = [
  ["the platform", namesOfThePlatform],
  ["the wire", () => sources("server/protocol").flatMap(({ text }) => fieldsOf(text))],
  [
    "what is stored and exported",
    () =>
      [
        "widget/transcript.ts",
        "widget/conversation.ts",
        "widget/chunks/stored-conversation.ts",
        "widget/chunks/export.ts",
      ]
        .flatMap((path) => read(path).match(/^(?:export )?interface [^}]*\n\}/gm) ?? [])
        .flatMap(fieldsOf),
  ],
  [
    "the texts, which a site may replace",
    () =>
      [
        "widget/strings.ts",
        "widget/texts/editing.ts",
        "widget/texts/feedback.ts",
        "widget/texts/files.ts",
        "widget/texts/keep.ts",
        "widget/texts/key-form.ts",
        "widget/texts/steps.ts",
        "widget/texts/tools.ts",
      ].flatMap((path) => fieldsOf(read(path))),
  ],
  [
    "the elements' public members, and their events' fields",
    () => read("dist/custom-elements.json").match(/(?<="name":")[^"]+|(?<="name": ")[^"]+/g) ?? [],
  ],
  [
    "who imports a chunk",
    () =>
      sources("widget/chunks").flatMap(({ text }) =>
        [...text.matchAll(/^export (?:async )?(?:function|class|const) (\w+)/gm)].map(([, name = ""]) => name),
      ),
  ],
];

for (const [who, names] of others) {
  test(`no name that the build shortens is one of ${who}`, () => {
    const known = new Set(names());
    assert.ok(known.size > 5, "names were found");
    assert.deepEqual(
      shortened.filter((name) => known.has(name)),
      [],
    );
  });
}

test("no name that the build shortens is written as a text, which would stay long", () => {
  const texts = sources("widget")
    .map(({ text }) => text)
    .join("\n");
  const quoted = shortened.filter((name) => new RegExp(`["'\`.@?]${name}(?:["'\`]|=\\$\\{)`).test(texts));
  assert.deepEqual(quoted, []);
});

test("the build shortens each name that it lists: none of them is in the built script", () => {
  const built = read("dist/public/widget.js");
  assert.deepEqual(
    shortened.filter((name) => new RegExp(`[.{,]${name}\\b`).test(built)),
    [],
  );
  assert.equal(new Set(shortened).size, shortened.length);
});

test("no name that the build shortens belongs to an object of a real browser, types or not", async (t) => {
  const browser = await launchBrowser(t);
  const page = await browser.newPage();
  // A loopback page may use everything, storage and clipboard included.
  await page.route("http://localhost/", (route) => route.fulfill({ body: "" }));
  await page.goto("http://localhost/");
  const known = await page.evaluate(() => {
    const names = new Set<string>();
    for (const name of Object.getOwnPropertyNames(window)) {
      names.add(name);
      const value = Reflect.get(window, name);
      for (const it of [value, value?.prototype, value && Object.getPrototypeOf(value)]) {
        if (it) for (const own of Object.getOwnPropertyNames(it)) names.add(own);
      }
    }
    return [...names];
  });
  assert.ok(known.includes("emptyScript"), "of Trusted Types, which the types lack");
  const wrong = new Set(known);
  assert.deepEqual(
    shortened.filter((name) => wrong.has(name)),
    [],
  );
});
