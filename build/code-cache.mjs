/** Keeps what V8 makes of the command's code beside it: a start would spend a third of its own time on making it anew. */

import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * V8 takes such a cache with scripts only, and what comes out of one cannot import. So the code becomes a script that is given what
 * only a module has, and its file the module that reads it and gives out the same names. `cli` asks for that file.
 */
export function keepCode(cli) {
  const [name] = /cli-[\w-]+\.js/.exec(readFileSync(cli, "utf8")) ?? [];
  const file = join(dirname(cli), name);
  const { code, names, end } = split(readFileSync(file, "utf8"));
  writeFileSync(file.replace(/\.js$/, ".script.js"), scriptOf(code, names) + end);
  writeFileSync(file, moduleOf(names));
  const program = fileURLToPath(new URL("warm-start.mjs", import.meta.url));
  execFileSync(process.execPath, [program, file], { stdio: ["ignore", "ignore", "pipe"] });
}

/** The code, what it exports by the names for others, and the comments behind that. */
function split(text) {
  const [exported, list, end] = /\bexport\{([^}]*)\};(\s*(?:\/\/# .*\s*)?)$/.exec(text) ?? [];
  const pairs = [...list.matchAll(/(\w+)(?: as (\w+))?/g)];
  const names = new Map(pairs.map(([, own, name = own]) => [name, own]));
  return { code: text.slice(0, -exported.length), names, end };
}

/** What stands for what a module has is as long, so that source maps stay right. */
function scriptOf(code, names) {
  const body = code
    .replace(
      /\bimport\{([^}]*)\}from"node:http"/g,
      (_, list) => `var{${list.replace(/ as /g, ":")}}=http`,
    )
    .replace(/\bimport\.meta\b/g, "import_meta")
    .replace(/\bimport\(/g, "$mport(");
  const given = [...names].map(([name, own]) => `${name}:${own}`);
  return `(function(http,import_meta,$mport){"use strict";${body}return{${given}}})`;
}

/** A cache is of one version of Node and of one kind of processor. Anywhere else the code is read as it is. */
function moduleOf(names) {
  return `import*as http from"node:http";
const{readFileSync}=process.getBuiltinModule("node:fs"),{Script}=process.getBuiltinModule("node:vm");
const filename=process.getBuiltinModule("node:url").fileURLToPath(import.meta.url).replace(/\\.js$/,".script.js");
export const cacheFile=\`\${filename}.\${process.version}-\${process.platform}-\${process.arch}.cache\`;
let cachedData;try{cachedData=readFileSync(cacheFile)}catch{}
export const script=new Script(readFileSync(filename,"latin1"),{filename,cachedData});
export const{${[...names.keys()]}}=script.runInThisContext()(http,import.meta,name=>import(name));
`;
}
