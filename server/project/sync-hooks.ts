/** How a project's imports are resolved where Node has hooks in the same thread (22.18 and later). */

import module, { createRequire } from "node:module";
import { formatOf, isPlain, mayBeSource, PACKAGE } from "./module-kinds.ts";
import type { HookSettings } from "./project-hooks.ts";

/** What the types of Node 20 do not have. */
interface Resolved {
  readonly url: string;
  readonly format?: string | undefined;
  readonly shortCircuit?: boolean;
}
interface Context {
  readonly parentURL?: string;
  readonly conditions?: readonly string[];
}
type Next = (specifier: string, context: Context) => Resolved;
type RegisterHooks = (hooks: {
  resolve(specifier: string, context: Context, next: Next): Resolved;
}) => void;
interface LaterModule {
  readonly registerHooks?: RegisterHooks;
}
const { registerHooks } = module as LaterModule;

/** Whether this Node has such hooks, and knows TypeScript's formats besides. */
export function hasSyncHooks(): boolean {
  return registerHooks !== undefined && "typescript" in process.features;
}

/** Loads `tsx` now, where `hasSyncHooks`: what it has for `require` finds no hooks for a thread. */
export function registerTsx(): void {
  // By `require`: the first import of a CommonJS package, which esbuild is, would make Node load a parser for those.
  const { register } = createRequire(import.meta.url)("tsx/esm/api") as {
    register(): unknown;
  };
  register();
}

/** `withTsx`: it is there already; without, it is loaded with the first file that Node cannot read by itself. */
export function registerSyncHooks(settings: HookSettings): void {
  let hasTsx = settings.withTsx;
  registerHooks?.({
    resolve(specifier, context, next) {
      if (specifier === PACKAGE) {
        return { url: settings.packageEntry, format: "module", shortCircuit: true };
      }
      const isRequired = context.conditions?.includes("require") === true;
      try {
        const resolved = next(specifier, context);
        if (hasTsx || isPlain(resolved.url, isRequired)) {
          return { ...resolved, format: formatOf(resolved.url, settings) ?? resolved.format };
        }
      } catch (error) {
        if (hasTsx || !mayBeSource(specifier, context.parentURL)) throw error;
        return resolveByTsx(specifier, context.parentURL, error);
      }
      return resolveByTsx(specifier, context.parentURL);
    },
  });

  /** From now on `tsx` is asked first, but not for what is being resolved: that is asked for anew. */
  function resolveByTsx(specifier: string, parent: string | undefined, error?: unknown): Resolved {
    hasTsx = true;
    registerTsx();
    try {
      const url = import.meta.resolve(
        /^[./]/.test(specifier) ? new URL(specifier, parent).href : specifier,
      );
      return { url, format: formatOf(url, settings), shortCircuit: true };
    } catch (failure) {
      throw error ?? failure;
    }
  }
}
