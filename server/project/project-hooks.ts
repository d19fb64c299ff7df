/** How a project's imports are resolved where hooks have a thread of their own: this file is built for that thread. */

import type { InitializeHook, LoadHook, ResolveFnOutput, ResolveHook } from "node:module";
import { formatOf, isPlain, mayBeSource, PACKAGE, type ProjectKind } from "./module-kinds.ts";

export interface HookSettings extends ProjectKind {
  /** URL of what `parley-agent` is. */
  readonly packageEntry: string;
}

interface Hooks {
  initialize: InitializeHook<object>;
  resolve: ResolveHook;
  load: LoadHook;
}

/** Their types are not in the package. */
const TSX_HOOKS: string = "tsx/esm";

let settings: HookSettings;
let tsx: Hooks | undefined;

export const initialize: InitializeHook<HookSettings> = (data) => {
  settings = data;
};

export const resolve: ResolveHook = async (specifier, context, next) => {
  if (specifier === PACKAGE) {
    return { url: settings.packageEntry, format: "module", shortCircuit: true };
  }
  const resolved = await find(specifier, context, next);
  return { ...resolved, format: formatOf(resolved.url, settings) ?? resolved.format };
};

export const load: LoadHook = (url, context, next) =>
  tsx === undefined ? next(url, context) : tsx.load(url, context, next);

async function find(
  ...[specifier, context, next]: Parameters<ResolveHook>
): Promise<ResolveFnOutput> {
  if (tsx !== undefined) return tsx.resolve(specifier, context, next);
  try {
    const resolved = await next(specifier, context);
    const isRequired = context.conditions.includes("require");
    if (settings.withTsx || isPlain(resolved.url, isRequired)) return resolved;
  } catch (error) {
    if (settings.withTsx || !mayBeSource(specifier, context.parentURL)) throw error;
  }
  // Another module may have asked meanwhile.
  const hooks = (await import(TSX_HOOKS)) as Hooks;
  if (tsx === undefined) await hooks.initialize({});
  tsx = hooks;
  return hooks.resolve(specifier, context, next);
}
