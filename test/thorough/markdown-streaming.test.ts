/** More random texts than npm test tries, and the examples that it leaves out. */

import "../support/dom.ts";

process.env.TRIES = "many";
await import("../widget/markdown-streaming.test.ts");
