import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readStaticFile, type StaticFile, staticText, styleSource } from "../http/static-file.ts";

const HTML = "text/html; charset=utf-8";

const SCRIPT = "text/javascript; charset=utf-8";

/** All at once, so that a script never names chunks of another build. */
interface Read {
  readonly page: StaticFile;
  readonly embed: StaticFile;
  readonly styleSource: string;
  readonly widget: StaticFile;
  readonly launcher: StaticFile;
  readonly chunks: ReadonlyMap<string, StaticFile>;
}

/** The built chat page, widget and chunks, held in memory. */
export class SiteFiles {
  /** Names of the chunks that are there at the start: what a client asks for never becomes the name of a file. */
  readonly chunkNames: readonly string[];
  readonly #folder: string;
  readonly #title: string;
  #read: Read | undefined;

  /** `title` is the page's. */
  constructor(folder: string, title: string) {
    this.#folder = folder;
    this.#title = title;
    this.chunkNames = readdirSync(join(folder, "chunks")).filter((name) => name.endsWith(".js"));
  }

  get page(): StaticFile {
    return this.#all().page;
  }

  get embed(): StaticFile {
    return this.#all().embed;
  }

  /** For the policy of both pages, which have the same style sheet. */
  get styleSource(): string {
    return this.#all().styleSource;
  }

  get widget(): StaticFile {
    return this.#all().widget;
  }

  get launcher(): StaticFile {
    return this.#all().launcher;
  }

  /** One of `chunkNames`. */
  chunk(name: string): StaticFile {
    const chunk = this.#all().chunks.get(name);
    if (chunk === undefined) throw new Error(`there was no chunk ${name} at the start`);
    return chunk;
  }

  /** Reads the files and compresses the pages, which the first request of one would have to wait for. */
  prepare(): void {
    this.#all();
  }

  #all(): Read {
    if (this.#read !== undefined) return this.#read;
    const page = this.#pageText("page.html");
    this.#read = {
      page: staticText(page, HTML),
      styleSource: styleSource(page),
      embed: staticText(this.#pageText("embed.html"), HTML),
      widget: this.#readScript("widget.js"),
      launcher: this.#readScript("launcher.js"),
      chunks: new Map(this.chunkNames.map((name) => [name, this.#readScript(join("chunks", name))])),
    };
    return this.#read;
  }

  #readScript(path: string): StaticFile {
    return readStaticFile(join(this.#folder, path), SCRIPT);
  }

  #pageText(name: string): string {
    const html = readFileSync(join(this.#folder, name), "utf8");
    return html.replace("{{title}}", () => escapeHtml(this.#title));
  }
}

const ENTITIES = new Map([
  ["&", "&amp;"],
  ["<", "&lt;"],
  [">", "&gt;"],
  ['"', "&quot;"],
]);

function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (char) => ENTITIES.get(char) ?? char);
}
