/** The files of examples/deploy against the server: its times, its metrics and its settings. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { readSettings, SETTINGS } from "../../server/config/settings.ts";
import { readMarkdown, section, tableRows } from "../support/markdown-file.ts";

test("the examples of deploying go together with the defaults", () => {
  const { runSeconds, drainSeconds } = readSettings({});
  const figures = (file: string, pattern: RegExp) => {
    const found = [...readMarkdown(file).matchAll(pattern)].map(([, figure]) => Number(figure));
    assert.ok(found.length > 0, `${file}: ${pattern}`);
    return Math.min(...found);
  };
  assert.ok(figures("examples/deploy/nginx.conf", /proxy_read_timeout (\d+)s;/g) > runSeconds);
  assert.ok(figures("examples/deploy/haproxy.cfg", /timeout (?:client|server) +(\d+)s/g) > runSeconds);
  assert.ok(figures("examples/deploy/parley.service", /TimeoutStopSec=(\d+)/g) > drainSeconds);
  assert.ok(figures("docs/deploying.md", /--stop-timeout (\d+)/g) > drainSeconds);
});

test("the autoscaler adds a pod before the pods that there are carry all they can", () => {
  const target = /averageValue: "(\d+)"/.exec(readMarkdown("examples/deploy/kubernetes/parley.yaml"))?.[1];
  assert.equal(Number(target), readSettings({}).maxRuns / 2);
});

test("the containers' time to stop is that of the drain and 15 seconds", () => {
  const seconds = readSettings({}).drainSeconds + 15;
  assert.match(readMarkdown("examples/deploy/compose.yaml"), new RegExp(`stop_grace_period: ${seconds}s`));
  const deployment = readMarkdown("examples/deploy/kubernetes/parley.yaml");
  assert.match(deployment, new RegExp(`terminationGracePeriodSeconds: ${seconds}\\b`));
});

test("alerts and dashboard use metrics that the server has, and variables of the examples are settings", () => {
  const rows = tableRows(section(readMarkdown("docs/api.md"), "## Metrics"), "metric").map(([name = ""]) => name);
  const own = new Set(rows);
  for (const file of ["alerts.yaml", "grafana-dashboard.json"]) {
    const text = readMarkdown(`examples/deploy/monitoring/${file}`);
    const used = [...new Set(text.match(/\bparley_[a-z_]+/g))].map((name) => name.replace(/_bucket$/, ""));
    assert.ok(used.length > 3);
    assert.deepEqual(
      used.filter((name) => !own.has(name)),
      [],
      file,
    );
  }
  const known = new Set(Object.values(SETTINGS).map(({ name }) => name));
  // The folder of the agent, its host and its .env are variables of the file itself.
  for (const name of ["PARLEY_AGENT", "PARLEY_HOST"]) known.add(name);
  for (const file of ["compose.yaml", "kubernetes/parley.yaml"]) {
    const used = readMarkdown(`examples/deploy/${file}`).match(/\bPARLEY_[A-Z_]+\b/g) ?? [];
    assert.deepEqual(
      used.filter((name) => !known.has(name)),
      [],
      file,
    );
  }
});
