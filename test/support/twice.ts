import { setTimeout as pause } from "node:timers/promises";

/** Retries a call to a package registry once, which may be busy for a moment; other failures occur again. */
export async function twice<Value>(install: () => Value | Promise<Value>): Promise<Value> {
  try {
    return await install();
  } catch (error) {
    console.error(`It is tried once more: ${error}`);
    await pause(5000);
    return install();
  }
}
