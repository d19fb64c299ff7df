import type { Results } from "./results.mjs";

export function judgeGoals(results: Results): {
  title: string;
  transport: string;
  limit: string;
  reached: boolean | undefined;
}[];
