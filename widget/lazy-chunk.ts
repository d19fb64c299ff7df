import { lent } from "./lent.ts";
import { scriptTag } from "./script-tag.ts";
import { parseServer } from "./server-url.ts";
import { english, type Strings } from "./strings.ts";

/** What is loaded only when an answer needs it, by name: the modules of `chunks/`. */
export interface Chunks {
  readonly highlight: typeof import("./chunks/highlight.ts");
  readonly tools: typeof import("./chunks/tools.ts");
  readonly "long-table": typeof import("./chunks/long-table.ts");
  readonly cut: typeof import("./chunks/cut.ts");
  readonly launcher: typeof import("./chunks/launcher.ts");
  readonly "locale-ar": typeof import("./chunks/locale-ar.ts");
  readonly "locale-de": typeof import("./chunks/locale-de.ts");
  readonly "locale-es": typeof import("./chunks/locale-es.ts");
  readonly "locale-fr": typeof import("./chunks/locale-fr.ts");
  readonly "locale-it": typeof import("./chunks/locale-it.ts");
  readonly "locale-ja": typeof import("./chunks/locale-ja.ts");
  readonly "locale-pt": typeof import("./chunks/locale-pt.ts");
  readonly "locale-zh": typeof import("./chunks/locale-zh.ts");
  readonly http: typeof import("./chunks/http.ts");
  readonly export: typeof import("./chunks/export.ts");
  readonly keep: typeof import("./chunks/keep.ts");
  readonly "key-form": typeof import("./chunks/key-form.ts");
  readonly steps: typeof import("./chunks/steps.ts");
  readonly files: typeof import("./chunks/files.ts");
  readonly feedback: typeof import("./chunks/feedback.ts");
  readonly editing: typeof import("./chunks/editing.ts");
}

/** What the build has put between the name of a chunk and `.js`, in the folder `chunks` beside `/widget.js`. */
declare const PARLEY_CHUNKS: string;

/** The first pause, in milliseconds, before a chunk is asked for again. */
const RETRY_MS = 1_000;

/** After that the pause stays the same: a minute. */
const MAX_DOUBLINGS = 6;

const loaded = new Map<keyof Chunks, Promise<unknown>>();

/** How often a chunk could not be had. Browsers remember what a URL failed with, but for one with another fragment they ask again. */
const failures = new Map<keyof Chunks, number>();

/** Where the chunks are. */
let server = scriptTag.server;

/** A module does not know where it came from: then the chunks are those of the element's server. */
export function loadChunksFrom(url: string): void {
  if (!scriptTag.isTag) server = url;
}

/** What a chunk may be besides what its users know of it. */
interface ChunkModule {
  /** A chunk that needs something of this script is a function of it. */
  default?: (lend: typeof lent) => ChunkModule;
  /** What it says in English. */
  texts?: Partial<Strings>;
}

function receive(module: ChunkModule): ChunkModule {
  const chunk = module.default?.(lent) ?? module;
  Object.assign(english, chunk.texts);
  return chunk;
}

/**
 * Loads a chunk from where this script came from, once. `undefined` when it cannot be had: the network is gone, the page's
 * policy forbids it, the server has been upgraded. An answer must be whole without it. The next need tries again, and so may
 * `again`, which is called after a pause that doubles with each failure.
 */
export async function loadChunk<Name extends keyof Chunks>(
  name: Name,
  again?: () => unknown,
): Promise<Chunks[Name] | undefined> {
  const tries = failures.get(name) ?? 0;
  try {
    const base = scriptTag.isTag ? server : parseServer(server);
    const url = new URL(`chunks/${name}${PARLEY_CHUNKS}.js#${tries}`, base);
    const chunk = loaded.get(name) ?? import(url.href).then(receive);
    loaded.set(name, chunk);
    return (await chunk) as Chunks[Name];
  } catch {
    loaded.delete(name);
    failures.set(name, tries + 1);
    if (again) setTimeout(again, RETRY_MS * 2 ** Math.min(tries, MAX_DOUBLINGS));
    return undefined;
  }
}
