/** What a start serves, by Parley and by a bare server: which arguments each takes for it. */

import { pathOf } from "../driver/processes.mjs";
import { BARE } from "../driver/targets.mjs";

/** Node reads TypeScript by itself from 22.18 on; before, a bare server needs what Parley has with it. */
const TYPESCRIPT = process.features.typescript ? [] : ["--import", import.meta.resolve("tsx/esm")];

/** By metric. `of`: the arguments of Parley in place of the project that the other scenarios serve. */
const PROJECTS = {
  ms: { bare: [pathOf("project/agent.mjs")], of: (args) => args },
  demo: { bare: [], of: (args) => args.slice(0, -1) },
  typescript: {
    flags: TYPESCRIPT,
    bare: [pathOf("project-ts/agent.ts")],
    of: (args) => [...args.slice(0, -1), pathOf("project-ts")],
  },
};

/** The starts of a server by metric: each with the arguments of its process. Others serve no projects. */
export function startsOf(spec) {
  const all = Object.entries(PROJECTS);
  if (spec === BARE) {
    return all.map(([metric, { flags = [], bare }]) => [metric, [...flags, ...spec.args, ...bare]]);
  }
  if (!spec.args.includes("start")) return [["ms", spec.args]];
  return all.map(([metric, { of }]) => [metric, of(spec.args)]);
}
