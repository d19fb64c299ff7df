import type { Plugin } from "esbuild";

export const litCoreOnly: Plugin;
export function coreOnly(file: string, source: string): string;
