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
  readonly actions: typeof import("./chunks/actions.ts");
}

/** What the build has put between the name of a chunk and `.js`, in the folder `chunks` beside `/widget.js`. */
declare const PARLEY_CHUNKS: string;

/** A pause before a chunk is asked for again is at most so long at first, in milliseconds. */
const RETRY_MS = 1_000;

/** After that it stays the same: a minute. */
const MAX_DOUBLINGS = 6;

const loaded: Partial<Record<keyof Chunks, Promise<ChunkModule> | undefined>> = {};

/** How often a chunk could not be had. Browsers remember what a URL failed with, but for one with another fragment they ask again. */
const failures: Partial<Record<keyof Chunks, number>> = {};

/** Before a chunk is asked for again: one pause for all who wait for it, which hear when it is ended. */
const pauses: Partial<Record<keyof Chunks, AbortController>> = {};

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
 * policy forbids it, the server has been upgraded. An answer must be whole without it. Then `again` is called when it is time
 * to ask once more, which is the same moment for all who wait. Who asks meanwhile waits with them, but for who is in a hurry,
 * because a person has pressed a button, and who has no `again`.
 */
export async function loadChunk<Name extends keyof Chunks>(
  name: Name,
  again?: () => unknown,
  inHurry?: boolean,
): Promise<Chunks[Name] | undefined> {
  const tries = failures[name] ?? 0;
  if (inHurry || !again || !pauses[name]) {
    try {
      const base = scriptTag.isTag ? server : parseServer(server);
      const url = new URL(`chunks/${name}${PARLEY_CHUNKS}.js#${tries}`, base);
      loaded[name] ??= import(url.href).then(receive);
      const chunk = await loaded[name];
      pauses[name]?.abort();
      return chunk as Chunks[Name];
    } catch {
      loaded[name] = undefined;
      failures[name] = tries + 1;
    }
  }
  if (again) {
    pauses[name] ??= beginPause(name, RETRY_MS * 2 ** Math.min(tries, MAX_DOUBLINGS));
    pauses[name].signal.addEventListener("abort", again);
  }
  return undefined;
}

/** Not as long for everybody. A network that is there again ends it. */
function beginPause(name: keyof Chunks, longest: number): AbortController {
  const pause = new AbortController();
  const { signal } = pause;
  const end = () => pause.abort();
  setTimeout(end, Math.random() * longest);
  window.addEventListener("online", end, { signal });
  signal.addEventListener("abort", () => delete pauses[name]);
  return pause;
}
