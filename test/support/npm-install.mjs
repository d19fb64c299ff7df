/** Replaces `npm install` in a test: links this repository's packages; their versions must match the request. */

import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));
const [command, ...packages] = process.argv.slice(2);
if (command !== "install" || packages.length === 0) throw new Error(`npm ${command} is not played by this file`);

for (const wanted of packages) {
  const [, name = "", major] = /^(@?[^@]+)(?:@(\d+))?$/.exec(wanted) ?? [];
  const source = name === "parley-agent" ? REPOSITORY : join(REPOSITORY, "node_modules", name);
  const { version } = JSON.parse(readFileSync(join(source, "package.json"), "utf8"));
  if (major !== undefined && !version.startsWith(`${major}.`)) throw new Error(`${wanted}: the tests run ${version}`);
  const target = join("node_modules", name);
  mkdirSync(dirname(target), { recursive: true });
  symlinkSync(source, target);
  if (name !== "parley-agent") continue;
  mkdirSync("node_modules/.bin");
  const script = `#!/bin/sh\nexec "${process.execPath}" "${join(REPOSITORY, "dist/cli.js")}" "$@"\n`;
  writeFileSync("node_modules/.bin/parley", script, { mode: 0o755 });
}
