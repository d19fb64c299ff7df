/**
 * Two names for a test: `test` for main paths, which `npm test` runs, and `it` for rare cases, which the thorough tests
 * run. A test file that is run directly runs both.
 */

import { test as row } from "node:test";

const { ROWS } = process.env;

const leaveOut = (() => {}) as unknown as typeof row;

export const test = ROWS === "edges" ? leaveOut : row;
export const it = ROWS === "main" ? leaveOut : row;
