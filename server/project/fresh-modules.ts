/** Loads the modules of a project more than once: bypasses caches, and records each file that is read. */

import { createRequire, register } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Jiti, JitiOptions } from "jiti";
import type { AgentModule } from "../agent/define.ts";
import { loadProject } from "./load-project.ts";
import { ownModule } from "./own-files.ts";

/** Where Parley's own code is, which is not loaded again. */
const PARLEY = new URL(".", ownModule("server/parley-agent.ts"));
const PARLEY_FOLDER = fileURLToPath(PARLEY);

const isOfProject = (path: string): boolean => !/[\\/]node_modules[\\/]/.test(path) && !path.startsWith(PARLEY_FOLDER);

/** Loads a project as often as it changes. */
export class ProjectLoader {
  readonly #folder: string;
  /** Node's cache of CommonJS and JSON. */
  readonly #cache: NodeJS.Dict<NodeModule>;
  /** Modules that were loaded before the first load are not the project's. */
  readonly #foreign: ReadonlySet<string>;
  readonly #compiled = new Set<string>();
  #isServing = false;

  constructor(folder: string) {
    this.#folder = folder;
    this.#cache = createRequire(join(folder, "agent.ts")).cache;
    this.#foreign = new Set(Object.keys(this.#cache));
    registerHook();
  }

  /** The files that the last load has read, even if it failed, except those in `node_modules`. */
  get files(): string[] {
    return [...this.#compiled, ...this.#required()];
  }

  /** Reads every file again. @throws ConfigError as `loadProject` */
  async load(): Promise<AgentModule> {
    for (const path of this.#required()) delete this.#cache[path];
    this.#compiled.clear();
    const reloading = { options: (compiler: Jiti) => this.#options(compiler), isServing: this.#isServing };
    this.#isServing = true;
    return loadProject(this.#folder, reloading);
  }

  /** The options of the `jiti` that loads; `compiler` is another one, which may keep what it has compiled. */
  #options(compiler: Jiti): JitiOptions {
    return {
      moduleCache: false,
      fsCache: false,
      transform: (source) => {
        if (source.filename !== undefined && isOfProject(source.filename)) this.#compiled.add(source.filename);
        return { code: compiler.transform(source) };
      },
    };
  }

  #required(): string[] {
    return Object.keys(this.#cache).filter((path) => isOfProject(path) && !this.#foreign.has(path));
  }
}

/**
 * `jiti` passes plain JavaScript to Node's `import`, which never reads a file again. For an ES module this hook throws,
 * and `jiti` compiles it, as it does whenever Node cannot read a file. CommonJS gets a new address each time.
 */
const HOOK = `
let imports = 0;
export async function resolve(specifier, context, next) {
  const resolved = await next(specifier, context);
  const { url, format } = resolved;
  if (!context.parentURL?.endsWith("/jiti/lib/jiti.mjs") || !url.startsWith("file:")) return resolved;
  if (url.includes("/node_modules/") || url.startsWith("${PARLEY.href}")) return resolved;
  if (format === "module") throw new Error("jiti compiles it");
  return { ...resolved, url: url + "?" + imports++ };
}`;

let isRegistered = false;

function registerHook(): void {
  if (isRegistered) return;
  isRegistered = true;
  register(`data:text/javascript,${encodeURIComponent(HOOK)}`);
}
