/** Builds dist/: the command, the package's entry for agent projects, and the browser's files. */

import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build, context } from "esbuild";

/** Most that `/widget.js` may weigh on the wire; the build fails above it. */
const WIDGET_BUDGET_GZIP_BYTES = 50 * 1024;

const watching = process.argv.includes("--watch");
const { version } = JSON.parse(readFileSync("package.json", "utf8"));
const define = { PARLEY_VERSION: JSON.stringify(version) };

/** Packages stay outside: they are loaded on first need, and their licences travel with them. */
const node = {
  entryPoints: { cli: "cli.ts", "parley-agent": "server/parley-agent.ts" },
  outdir: "dist",
  bundle: true,
  platform: "node",
  target: "node20",
  format: "esm",
  packages: "external",
  sourcemap: true,
  define,
};

/** White space and comments inside css`` and html`` are text to esbuild: they would go over the wire. */
const compactTemplates = {
  name: "compact-templates",
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]widget[\\/].*\.ts$/ }, ({ path }) => {
      const source = readFileSync(path, "utf8").replace(/\n\s+/g, "\n");
      return { contents: source.replace(/css`([^`]*)`/g, compactCss), loader: "ts" };
    });
  },
};

function compactCss(_, rules) {
  const compact = rules
    .replace(/\/\*[\s\S]*?\*\//g, "")
    .replace(/\s+/g, " ")
    .replace(/\s*([{};,>])\s*/g, "$1")
    .replace(/: /g, ":")
    .replace(/;}/g, "}");
  return `css\`${compact}\``;
}

/**
 * Only marked's lexer is used. Its bundle ends by building a whole `Marked`, which keeps its parser and HTML renderer
 * alive; without that end, esbuild drops them (3 kB on the wire).
 */
const markedLexerOnly = {
  name: "marked-lexer-only",
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]marked\.esm\.js$/ }, ({ path }) => {
      const [, kept, exported] =
        /^([\s\S]*;)var \w+=new \w+;function [\s\S]*export\{([^}]*)\};/.exec(
          readFileSync(path, "utf8"),
        ) ?? [];
      const names = exported?.split(",").filter((name) => /as (Lexer|Tokenizer)$/.test(name));
      if (names?.length !== 2) {
        throw new Error(
          "marked's bundle has a new form: adapt markedLexerOnly in esbuild.config.mjs.",
        );
      }
      return { contents: `${kept}export{${names}};`, loader: "js" };
    });
  },
};

/** A classic script, so that a plain <script src> works on any site. */
const browser = {
  entryPoints: { widget: "widget/embed.ts" },
  outdir: "dist/public",
  bundle: true,
  platform: "browser",
  target: "es2022",
  format: "iife",
  minify: !watching,
  legalComments: "linked",
  sourcemap: watching ? "inline" : false,
  plugins: watching ? [] : [compactTemplates, markedLexerOnly],
  define,
};

function pages() {
  const page = readFileSync("widget/page.html", "utf8");
  writeFileSync("dist/public/page.html", page);
  writeFileSync(
    "dist/public/embed.html",
    page.replace("<agent-chat page>", "<agent-chat page embed>"),
  );
}

/** Compresses once, at build time, as hard as it goes. */
function compress(file) {
  const bytes = readFileSync(file);
  const gzip = gzipSync(bytes, { level: 9 });
  const brotli = brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } });
  writeFileSync(`${file}.gz`, gzip);
  writeFileSync(`${file}.br`, brotli);
  return { bytes: bytes.length, gzip: gzip.length, brotli: brotli.length };
}

rmSync("dist", { recursive: true, force: true });
mkdirSync("dist/public", { recursive: true });
pages();

if (watching) {
  for (const options of [node, browser]) await (await context(options)).watch();
  const args = process.argv.slice(2).filter((argument) => argument !== "--watch");
  spawn(process.execPath, ["--watch", "dist/cli.js", "start", ...args], { stdio: "inherit" });
} else {
  await Promise.all([build(node), build(browser)]);
  const size = compress("dist/public/widget.js");
  const kilobytes = (count) => `${(count / 1024).toFixed(1)} kB`;
  console.log(
    `Built dist/. widget.js: ${kilobytes(size.bytes)}, gzip ${kilobytes(size.gzip)} of ${kilobytes(WIDGET_BUDGET_GZIP_BYTES)} allowed, brotli ${kilobytes(size.brotli)}.`,
  );
  if (size.gzip > WIDGET_BUDGET_GZIP_BYTES) {
    console.error(
      "widget.js is over its budget: make it smaller, or split off what is not needed to chat.",
    );
    process.exitCode = 1;
  }
}
