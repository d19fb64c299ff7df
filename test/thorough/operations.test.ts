/** More of what people can do in two tabs than npm test tries. */

process.env.RUNS = "400";
process.env.SEED ??= "1000";
await import("../widget/operations.test.ts");
