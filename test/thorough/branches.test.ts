/** More random sequences of what people do in two tabs than npm test tries. */

process.env.TRIES = "many";
await import("../widget/branches.test.ts");
