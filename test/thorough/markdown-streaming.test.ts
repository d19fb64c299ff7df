/** More random texts than in npm test, and the examples that it leaves out. */

import "../support/dom.ts";

process.env.TRIES = "many";
await import("../widget/markdown-streaming.test.ts");
