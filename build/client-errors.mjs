/** A client tells errors apart and knows which may pass; their HTTP statuses are the server's business. */

import { readFile } from "node:fs/promises";

/** Takes the statuses out of the table of error codes, and fails when the table has a new form. */
export const clientErrors = {
  name: "client-errors",
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]protocol[\\/]errors\.ts$/ }, async ({ path }) => {
      const source = await readFile(path, "utf8");
      const contents = source.replace(/status: \d+, retryable/g, "retryable");
      if (contents === source) throw new Error("the table of error codes has a new form");
      return { contents, loader: "ts" };
    });
  },
};
