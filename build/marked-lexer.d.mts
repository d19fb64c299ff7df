import type { Plugin } from "esbuild";

export const markedLexerOnly: Plugin;
export function lexerOnly(source: string): Promise<string>;
