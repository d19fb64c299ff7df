/** Processes behind HAProxy without sticky sessions: a resume may reach any of them. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { post, readEventStream } from "../support/chat-transports.ts";
import { start } from "../support/command.ts";
import { freePort } from "../support/free-port.ts";
import { NO_REDIS, startRedis } from "../support/redis-server.ts";
import { missing } from "../support/reverse-proxy.ts";
import { newRun } from "../support/run-lines.ts";
import type { Cleanup } from "../support/start-server.ts";

/** Number of resumes: of each run, from each event, at each process, several times. */
const RESUMES = Number(process.env.RESUMES ?? 2_000);
const AT_ONCE = 20;

async function startHaproxy(t: Cleanup, hosts: readonly string[]): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "haproxy-"));
  const port = await freePort();
  const servers = hosts.map((host, index) => `  server parley${index} ${host} check inter 5s`);
  writeFileSync(
    join(folder, "haproxy.cfg"),
    `defaults
  mode http
  timeout connect 2s
  timeout client 60s
  timeout server 60s
frontend front
  bind 127.0.0.1:${port}
  default_backend parley
backend parley
  balance roundrobin
  option httpchk GET /health/ready
${servers.join("\n")}
`,
  );
  const haproxy = spawn("haproxy", ["-db", "-f", join(folder, "haproxy.cfg")], { stdio: "ignore" });
  t.after(() => {
    haproxy.kill("SIGKILL");
    rmSync(folder, { recursive: true });
  });
  const url = `http://127.0.0.1:${port}`;
  while (
    !(await fetch(`${url}/health`).then(
      ({ ok }) => ok,
      () => false,
    ))
  )
    await pause(50);
  return url;
}

for (const count of [2, 4]) {
  const resumes = RESUMES / 2;
  test(`${resumes} resumes spread over ${count} processes: every event once and in order`, {
    skip: NO_REDIS || missing("haproxy"),
    timeout: 300_000,
  }, async (t) => {
    const redis = await startRedis(t);
    const env = { PARLEY_REDIS_URL: redis.url, PARLEY_RESUME_SECONDS: "200", PARLEY_LOG: "off" };
    const servers = await Promise.all(Array.from({ length: count }, () => start(t, [], { env })));
    const url = await startHaproxy(
      t,
      servers.map(({ host }) => host),
    );
    const runs = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const run = newRun();
        const response = await post({ url }, { message: "What is the weather in Paris?", stream: true, run });
        return { run, last: readEventStream(await response.text()).length };
      }),
    );
    const firstEventMs: number[] = [];
    let left = resumes;
    const resumeSome = async () => {
      while (left-- > 0) {
        const { run, last } = runs[left % runs.length] as { run: string; last: number };
        const after = left % last;
        const startedAt = performance.now();
        const response = await fetch(`${url}/api/chat/runs/${run}`, { headers: { "last-event-id": String(after) } });
        const ids = [...(await response.text()).matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id));
        firstEventMs.push(performance.now() - startedAt);
        assert.deepEqual(
          ids,
          Array.from({ length: last - after }, (_event, index) => after + index + 1),
        );
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, resumeSome));
    firstEventMs.sort((one, other) => one - other);
    const quantile = (part: number) => firstEventMs[Math.floor(firstEventMs.length * part)]?.toFixed(1);
    t.diagnostic(`a whole resume, ${AT_ONCE} at once: p50 ${quantile(0.5)} ms, p99 ${quantile(0.99)} ms`);
  });
}
