/** `examples/deploy/update.sh` under load: nginx, curl and npm are real, and processes replace systemd units. */

import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { DIST, REPOSITORY } from "../support/command.ts";
import { freePort } from "../support/free-port.ts";
import { missing, startReverseProxy } from "../support/reverse-proxy.ts";
import type { Cleanup } from "../support/start-server.ts";
import { temporaryProject } from "../support/temporary-project.ts";

/** An answer takes longer than a reload of nginx. */
const agent = (version: string) => `export default { name: "${version}", async run() {
  await new Promise((resolve) => setTimeout(resolve, 300));
  return "${version}";
} };`;

/** Starts and stops processes like systemd's units, and reloads nginx. */
const systemctl = (folder: string, nginx: string) => `#!/bin/sh
set -eu
for last; do :; done
port=\${last#parley@}
case "$*" in
  start*) cd "${folder}/$port" && (exec "${process.execPath}" "${DIST}/cli.js" start --port "$port" >log 2>&1) & echo $! >"${folder}/$port.pid" ;;
  stop*|disable*) kill "$(cat "${folder}/$port.pid")" || true; while kill -0 "$(cat "${folder}/$port.pid")" 2>/dev/null; do sleep 0.1; done ;;
  reload*) nginx -p "${nginx}" -e stderr -c "${nginx}/nginx.conf" -s reload ;;
esac
`;

async function deployment(t: Cleanup) {
  const [blue, green] = [await freePort(), await freePort()];
  const front = await startReverseProxy(t, "nginx", blue);
  const files = { "v1/agent.mjs": agent("v1"), "v2/agent.mjs": agent("v2"), "broken/agent.mjs": "export default {" };
  let folder = "";
  // Registered before the folder's removal, because the folder contains the process ids.
  t.after(() => execFileSync("sh", ["-c", `kill -9 $(cat "${folder}"/served/*.pid) || true`], { stdio: "ignore" }));
  folder = temporaryProject(t, files);
  for (const name of ["v1", "v2", "broken"]) {
    writeFileSync(join(folder, name, "package.json"), '{ "name": "mine", "version": "1.0.0" }');
    const lock = {
      name: "mine",
      version: "1.0.0",
      lockfileVersion: 3,
      packages: { "": { name: "mine", version: "1.0.0" } },
    };
    writeFileSync(join(folder, name, "package-lock.json"), JSON.stringify(lock));
  }
  mkdirSync(join(folder, "bin"));
  mkdirSync(join(folder, "served"));
  const program = (name: string, text: string) => {
    writeFileSync(join(folder, "bin", name), text);
    chmodSync(join(folder, "bin", name), 0o755);
    return join(folder, "bin", name);
  };
  program("systemctl", systemctl(join(folder, "served"), front.folder));
  const shown = readFileSync(join(REPOSITORY, "examples/deploy/update.sh"), "utf8");
  const script = program(
    "update.sh",
    shown
      .replaceAll("/srv/my-agent", join(folder, "served"))
      .replaceAll("/etc/nginx/conf.d/parley.conf", join(front.folder, "nginx.conf"))
      .replaceAll("8080", String(blue))
      .replaceAll("8081", String(green))
      .replace("nginx -t -q", ":")
      .replace("tries=60", "tries=5"),
  );
  const env = {
    ...process.env,
    PATH: `${join(folder, "bin")}:${process.env.PATH}:/usr/sbin`,
    PARLEY_DRAIN_SECONDS: "20",
  };
  const run = promisify(execFile);
  const control = (...args: string[]) => run("systemctl", args, { env });
  return { front, folder, blue, update: (name: string) => run(script, [join(folder, name)], { env }), control, run };
}

/** Uses a new connection each time, so that no refused one is hidden. */
function ask(url: string): Promise<{ status: number | undefined; text: string }> {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json" };
    const asking = request(`${url}/api/chat`, { method: "POST", agent: false, headers });
    asking.once("error", reject);
    asking.once("response", async (response: IncomingMessage) => {
      let text = "";
      for await (const piece of response.setEncoding("utf8")) text += piece;
      resolve({ status: response.statusCode, text });
    });
    asking.end(JSON.stringify({ message: "Which version?", stream: false }));
  });
}

test("an update behind nginx refuses no message, and one that does not start changes nothing", {
  skip: missing("nginx"),
}, async (t) => {
  const { front, folder, blue, update, control, run } = await deployment(t);
  await run("cp", ["-R", join(folder, "v1"), join(folder, "served", String(blue))]);
  await control("start", `parley@${blue}`);
  while ((await ask(front.url)).status !== 200);
  const answers: string[] = [];
  let isOver = false;
  const clients = Array.from({ length: 8 }, async () => {
    while (!isOver) {
      const { status, text } = await ask(front.url);
      assert.equal(status, 200, text);
      answers.push(JSON.parse(text).response);
    }
  });
  await assert.rejects(update("broken"), /did not become ready/);
  assert.equal(answers.includes("v2"), false);
  await update("v2");
  isOver = true;
  await Promise.all(clients);
  assert.equal(JSON.parse((await ask(front.url)).text).response, "v2");
  assert.ok(answers.lastIndexOf("v1") > 8 && answers.includes("v2"), answers.join(" "));
});
