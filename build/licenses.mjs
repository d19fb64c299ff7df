/** The licences of the packages that a bundle holds. Most of them ask to go wherever the code goes. */

import { readdirSync, readFileSync } from "node:fs";

/** One text with the licence of each package that is among the inputs of a build. */
export function licensesOf({ inputs }) {
  const folders = Object.keys(inputs).map((path) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]);
  const packages = [...new Set(folders)].filter((folder) => folder !== undefined).sort();
  return packages.map(licenseOf).join(`\n${"-".repeat(80)}\n\n`);
}

function licenseOf(folder) {
  const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  const text =
    file === undefined ? "The package holds no text of its licence." : readFileSync(`${folder}/${file}`, "utf8");
  return `${name} ${version} (${license})\n\n${text.trim()}\n`;
}
