/** Tracing with the built command: found where it is installed, and nothing of it is lost at the end. */

import assert from "node:assert/strict";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ConfigError } from "../../server/errors.ts";
import { loadIfInstalled } from "../../server/project/optional-package.ts";
import { post } from "../support/chat-transports.ts";
import { REPOSITORY, start } from "../support/command.ts";
import { temporaryProject } from "../support/temporary-project.ts";

/** Prints names of spans. It sends by itself only after an hour. */
const SDK = `
  import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";
  const exporter = {
    export(spans, done) {
      process.stderr.write("spans: " + spans.map(({ name }) => name).sort().join(", ") + "\\n");
      done({ code: 0 });
    },
    async shutdown() {},
  };
  const processor = new BatchSpanProcessor(exporter, { scheduledDelayMillis: 3_600_000 });
  new NodeTracerProvider({ spanProcessors: [processor] }).register();
`;

test("spans of a project that brings OpenTelemetry are sent, those of the last runs too", async (t) => {
  const project = temporaryProject(t, {
    "agent.ts": 'export default { name: "Mine", model: "demo" };',
    "tracing.mjs": SDK,
  });
  mkdirSync(join(project, "node_modules"));
  symlinkSync(join(REPOSITORY, "node_modules/@opentelemetry"), join(project, "node_modules/@opentelemetry"));
  const env = { NODE_OPTIONS: `--import=${join(project, "tracing.mjs")}` };
  const { command, url } = await start(t, [project], { env });
  assert.equal((await post({ url }, { message: "Hi", stream: false })).status, 200);
  command.kill("SIGTERM");
  const { code, stderr } = await command.end();
  assert.match(stderr, /^spans: chat demo, invoke_agent Mine$/m);
  assert.equal(code, 0);
});

test("a package that is not installed is none, and a broken one is told", (t) => {
  assert.equal(loadIfInstalled("@acme/none", temporaryProject(t, {})), undefined);
  assert.equal(loadIfInstalled("@acme/none", undefined), undefined);
  const broken = temporaryProject(t, {
    "node_modules/@acme/none/package.json": '{"main":"index.js"}',
    "node_modules/@acme/none/index.js": 'throw new Error("out of order");',
  });
  assert.throws(
    () => loadIfInstalled("@acme/none", broken),
    new ConfigError("The package @acme/none cannot be loaded: out of order."),
  );
});
