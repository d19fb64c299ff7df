/** More cases of two tabs, in addition to those of npm test. */

process.env.RUNS = "400";
process.env.SEED ??= "1000";
await import("../widget/operations.test.ts");
