/** What browsers load is minified twice and compressed once, at build time, as hard as it goes. */

import { readFileSync, writeFileSync } from "node:fs";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { minify } from "terser";

/**
 * esbuild sees modules; terser then sees one file, and finds what can be joined, inlined and dropped in it (1.3 kB of
 * `/widget.js` on the wire).
 */
export async function minifyAgain(file, { module = false } = {}) {
  const { code } = await minify(readFileSync(file, "utf8"), {
    ecma: 2022,
    module,
    toplevel: true,
    // Terser's `unsafe` counts on built-ins being those of the language: `RegExp(x)` for `new RegExp(x)`, `x + ""` for `String(x)`,
    // constant calls worked out beforehand, and more. Nothing of ours replaces a built-in, or makes a text of a symbol. The
    // browser tests run what it made.
    // Nothing reads a getter only for what it does besides. Statements and comparisons stay what they were written as where that has more in common with the rest of the file.
    compress: {
      passes: 3,
      unsafe: true,
      keep_fargs: false,
      if_return: false,
      conditionals: false,
      lhs_constants: false,
      pure_getters: true,
    },
    format: { comments: /^!/, ascii_only: true },
  });
  writeFileSync(file, code);
}

/** Writes the compressed forms beside a file, and answers how many bytes each has. */
export function compress(file) {
  const bytes = readFileSync(file);
  const gzip = gzipSync(bytes, { level: 9 });
  const brotli = brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } });
  writeFileSync(`${file}.gz`, gzip);
  writeFileSync(`${file}.br`, brotli);
  return { bytes: bytes.length, gzip: gzip.length, brotli: brotli.length };
}
