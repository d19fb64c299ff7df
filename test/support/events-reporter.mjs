/** A machine-readable reporter for Node's test runner: one line of JSON per event. */
export default async function* reportEvents(events) {
  for await (const { type, data } of events) {
    if (!["test:enqueue", "test:complete", "test:pass", "test:fail"].includes(type)) continue;
    const { name, nesting, skip, details } = data;
    const error = type === "test:fail" ? String(details.error.cause?.stack ?? details.error) : undefined;
    yield `${JSON.stringify({ type, name, nesting, skip, error })}\n`;
  }
}
