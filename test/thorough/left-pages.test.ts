/** More cases of pages that are left, in addition to those of npm test. */

process.env.RUNS = "1000";
process.env.SEED ??= "1000";
await import("../widget/left-pages.test.ts");
