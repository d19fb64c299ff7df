/** The built command inside another program's cluster, such as pm2's. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { Command, DIST } from "../support/command.ts";
import { temporaryProject } from "../support/temporary-project.ts";

const FOREIGN_PRIMARY = `
import cluster from "node:cluster";
cluster.setupPrimary({ exec: process.argv[2], args: ["start", "--port", "0"] });
cluster.on("message", (_worker, message) => console.log("Asked: " + JSON.stringify(message)));
for (let count = 0; count < 2; count++) cluster.fork();
`;

test("processes in the cluster of another program each print their URL, and count for themselves", async (t) => {
  const cli = join(temporaryProject(t, { "primary.mjs": FOREIGN_PRIMARY }), "primary.mjs");
  const command = new Command([join(DIST, "cli.js")], { cli });
  t.after(async () => {
    command.kill("SIGTERM");
    await command.end();
  });
  const url = await command.printed("stdout", /^(http:\S+)\n[\s\S]*^http:\S+\n/m);
  const page = await (await fetch(`${url}metrics`)).text();
  assert.match(page, /^parley_info\{model="demo"\} 1$/m);
  assert.doesNotMatch(command.stdout, /Asked/);
});
