/** Starts the built command once, up to its first answer, and writes what V8 has made of its code by then. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [file] = process.argv.slice(2);
const { cacheFile, script, runCommand } = await import(pathToFileURL(resolve(file)).href);

const project = mkdtempSync(join(tmpdir(), "parley-build-"));
process.on("exit", () => rmSync(project, { recursive: true }));
writeFileSync(
  join(project, "agent.mjs"),
  'export default { name: "Build", model: "openai/none" };',
);
process.env.OPENAI_API_KEY = "none";

let printed = "";
process.stdout.write = (text) => {
  printed += text;
  return true;
};
const cli = resolve(file, "../cli.js");
await runCommand({ words: ["start", project], flags: { port: "0" }, cli, version: "" });
get(`${printed.trim().split("\n").pop()}health`, (answer) => {
  answer.resume().on("end", () => {
    writeFileSync(cacheFile, script.createCachedData());
    process.exit(answer.statusCode === 200 ? 0 : 1);
  });
});
