/** A reporter of Node's runner that names what failed, one line each, so that it can be said last. */

import type { TestEvent } from "node:test/reporters";

/** Longer messages stand in the other report. */
const MESSAGE_LENGTH = 300;

type Failure = Extract<TestEvent, { type: "test:fail" }>["data"];

/** What was thrown, in one line: Node puts it into an error of its own. */
function reason({ details: { error } }: Failure): string {
  const { message } = error.cause instanceof Error ? error.cause : error;
  return message.replace(/\s+/g, " ").slice(0, MESSAGE_LENGTH);
}

// biome-ignore lint/style/noDefaultExport: the runner takes this export.
export default async function* failed(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const event of events) {
    if (event.type !== "test:fail") continue;
    const { data } = event;
    // A test around one that failed is told of, too.
    if ("failureType" in data.details.error && data.details.error.failureType === "subtestsFailed")
      continue;
    // It does not fail the run.
    if (data.todo !== undefined) continue;
    yield `FAILED: ${data.name}: ${reason(data)}\n`;
  }
}
