import { readFileSync } from "node:fs";

/** Resident memory of a process and of all that it has started, in bytes. Where the kernel cannot say: not a number. */
export function residentOfAll(pid) {
  try {
    const kilobytes = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").match(/\d+/g) ?? [];
    return children.map(residentOfAll).reduce((sum, one) => sum + one, Number(kilobytes) * 1024);
  } catch {
    return Number.NaN;
  }
}
