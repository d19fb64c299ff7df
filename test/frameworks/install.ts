/**
 * Installs the packages of the frameworks that are named, ahead of their tests:
 * node --import tsx test/frameworks/install.ts FOLDER react next-16
 */

import { join } from "node:path";
import { installPackages } from "./project.ts";

const [folder = "", ...names] = process.argv.slice(2);
for (const name of names) await installPackages(name, join(folder, name));
