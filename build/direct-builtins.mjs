/** Has the command take Node's own modules as they are, and not through the loader of ES modules. */

/** What tools that watch a process put themselves in between, when it is imported. */
const WATCHED = /^https?$/;

const IMPORT = /^import (?!type )(?:(\w+),? )?(?:\{([^}]*)\} )?from "node:([\w/]+)";$/gm;

/**
 * An import of Node's modules takes a job of its own, and makes every name that a module gives out, also those that Node
 * itself leaves until somebody asks: together a tenth of what a start takes beyond Node's. A line stays a line.
 */
export function directBuiltins(source) {
  return source.replace(IMPORT, (statement, whole, names, name) => {
    if (WATCHED.test(name)) return statement;
    const from = `process.getBuiltinModule("node:${name}")`;
    const parts = [whole, names && `{ ${valuesOf(names)} }`].filter(Boolean);
    return `const ${parts.map((part) => `${part} = ${from}`).join(", ")};`;
  });
}

/** As a pattern; without types, of which nothing is left when the command runs. */
function valuesOf(names) {
  const imported = names.split(",").map((one) => one.trim());
  const values = imported.filter((one) => one !== "" && !one.startsWith("type "));
  return values.map((one) => one.replace(/ as /, ": ")).join(", ");
}
