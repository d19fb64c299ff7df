/** More of what can happen to pages that are left than npm test tries. */

process.env.RUNS = "1000";
process.env.SEED ??= "1000";
await import("../widget/left-pages.test.ts");
