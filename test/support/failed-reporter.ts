/** A reporter of Node's runner that names what failed, one line each, so that it can be said last. */

import type { TestEvent } from "node:test/reporters";

/** Longer messages stand in the other report. */
const MESSAGE_LENGTH = 300;

type Failure = Extract<TestEvent, { type: "test:fail" }>["data"];

function inOneLine(text: string): string {
  return `${text.trim().replace(/\s+/g, " ")}\n`;
}

/** What was thrown: Node puts it into an error of its own. */
function reason({ details: { error } }: Failure): string {
  const { message, name } = error.cause instanceof Error ? error.cause : error;
  // Several errors in one have none of their own.
  return (message || name).slice(0, MESSAGE_LENGTH);
}

// biome-ignore lint/style/noDefaultExport: the runner takes this export.
export default async function* failed(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const event of events) {
    // Of a process that its watchdog has ended: no test of it may be told of (`watchdog.ts`).
    if (event.type === "test:stderr" && event.data.message.startsWith("HUNG:")) {
      yield inOneLine(event.data.message);
    }
    if (event.type !== "test:fail") continue;
    const { data } = event;
    // A test around one that failed is told of, too.
    if ("failureType" in data.details.error && data.details.error.failureType === "subtestsFailed") continue;
    // It does not fail the run.
    if (data.todo !== undefined) continue;
    yield inOneLine(`FAILED: ${data.name}: ${reason(data)}`);
  }
}
