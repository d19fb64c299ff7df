/**
 * Two words for a row: `test` is one of the main paths, which `npm test` runs, and `it` is what seldom happens, which the
 * thorough tests run. A file that is run by itself has both.
 */

import { test as row } from "node:test";

const { ROWS } = process.env;

const leaveOut = (() => {}) as unknown as typeof row;

export const test = ROWS === "edges" ? leaveOut : row;
export const it = ROWS === "main" ? leaveOut : row;
