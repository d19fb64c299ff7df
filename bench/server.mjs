/** `npm run bench`: Parley, the floor and others side by side. See bench/README.md. */

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { judgeGoals } from "./server/driver/goals.mjs";
import { installPeers } from "./server/driver/install-peers.mjs";
import { HELP, readOptions } from "./server/driver/options.mjs";
import { writeProfiles } from "./server/driver/profile.mjs";
import { machine, writeGoals, writeReport } from "./server/driver/report.mjs";
import { Results } from "./server/driver/results.mjs";
import { runRounds, startSurroundings } from "./server/driver/rounds.mjs";
import { checkScale } from "./server/driver/scale.mjs";
import { checkBuild } from "./server/driver/targets.mjs";

async function main() {
  const options = readOptions(process.argv.slice(2));
  if (options.help) return console.log(HELP);
  checkBuild();
  installPeers(options.targets);
  const surroundings = await startSurroundings();
  if (options.scale) console.log(await checkScale(options, surroundings, tell));
  else await compare(options, surroundings);
  await Promise.all(Object.values(surroundings).map((child) => child.stop()));
}

async function compare(options, surroundings) {
  const results = new Results();
  try {
    await runRounds(options, surroundings, results, tell);
  } finally {
    // What was measured before a failure is not lost.
    if (results.measurements.length > 0) report(results, options);
  }
  if (options.profile) console.log(`\n${writeProfiles(options.profile)}`);
}

function report(results, options) {
  const goals = judgeGoals(results);
  const text = `${writeReport(results, options)}\n\n${writeGoals(goals)}\n`;
  const { rounds, quick, times, out } = options;
  const json = {
    machine: machine(),
    rounds,
    quick,
    times,
    goals,
    measurements: results.measurements,
  };
  mkdirSync(out, { recursive: true });
  writeFileSync(join(out, "server.md"), text);
  writeFileSync(join(out, "server.json"), `${JSON.stringify(json, null, 2)}\n`);
  console.log(`\n${text}\nWritten to ${out}/server.md and ${out}/server.json.`);
}

function tell({ scenario, transport, target, round }) {
  console.error(["·", scenario, target, transport, round && `round ${round}`].filter(Boolean).join(" "));
}

main().catch((error) => {
  console.error(`bench: ${error.message}`);
  process.exit(1);
});
