import assert from "node:assert/strict";
import { test } from "node:test";
import { GatheredLines } from "../../server/gathered-lines.ts";
import { createLog } from "../../server/log.ts";

test("lines of traffic are written together, and before them nothing that came later", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const written: string[] = [];
  const gathered = new GatheredLines((text) => written.push(text));
  const log = createLog((line, canWait) => gathered.add(line, canWait), []);
  const request = (route: string) =>
    log.request({ requestId: "1", method: "GET", route, status: 200, ms: 1, bytes: 1 });
  request("/one");
  request("/two");
  assert.deepEqual(written, []);
  t.mock.timers.tick(10);
  assert.match(written.join("|"), /^[^|]* \/one 200 [^|]*\n[^|]* \/two 200 [^|]*\n$/);
  request("/three");
  log.warning("of the server");
  assert.match(written.slice(1).join("|"), /^[^|]* \/three 200 [^|]*\n[^|]* warning: [^|]*\n$/);
  // As at the end of the process.
  request("/four");
  gathered.write();
  assert.match(written.slice(2).join("|"), /^[^|]* \/four 200 [^|]*\n$/);
  t.mock.timers.tick(10);
  request(`/${"x".repeat(64 * 1024)}`);
  assert.equal(written.length, 4);
});
