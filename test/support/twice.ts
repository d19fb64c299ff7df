import { setTimeout as pause } from "node:timers/promises";

/** Does what asks a registry of packages, which may be busy for a moment; anything else fails the second time, too. */
export async function twice<Value>(install: () => Value | Promise<Value>): Promise<Value> {
  try {
    return await install();
  } catch (error) {
    console.error(`It is tried once more: ${error}`);
    await pause(5000);
    return install();
  }
}
