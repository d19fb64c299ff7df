/** The results as tables: aligned for a terminal, which is Markdown too. */

import { cpus, totalmem } from "node:os";
import { BARE, DIRECT } from "./targets.mjs";

const TITLES = { sse: "SSE", ws: "WebSocket", http: "HTTP" };

export function machine() {
  const [{ model = "unknown" } = {}] = cpus();
  const memory = Math.round(totalmem() / 2 ** 30);
  return `${cpus().length} × ${model}, ${memory} GiB, ${process.platform} ${process.arch}, Node ${process.version}`;
}

/** Everything that was measured. */
export function writeReport(results, { scenarios, targets, rounds, quick }) {
  const about = `${machine()}; ${rounds} ${rounds === 1 ? "round" : "rounds"}${quick ? ", quick: not for comparing" : ""}.`;
  const tables = scenarios.flatMap((scenario) =>
    scenario.transports.map((transport) => writeScenario(results, scenario, transport, targets)),
  );
  return [about, ...tables.filter(Boolean)].join("\n\n");
}

function writeScenario(results, scenario, transport, asked) {
  const targets = [DIRECT, BARE, ...asked].filter(({ name }) =>
    results.measurements.some(
      (one) => one.scenario === scenario.name && one.transport === transport && one.target === name,
    ),
  );
  if (targets.length === 0) return undefined;
  const rows = Object.entries(scenario.metrics).flatMap(([metric, [title, unit]]) => {
    const cells = targets.map((target) => {
      const where = { scenario: scenario.name, transport, target: target.name, metric };
      return writeCell(results.cell(where));
    });
    if (cells.every((cell) => cell === "")) return [];
    return [[unit === "" ? title : `${title}, ${unit}`, ...cells]];
  });
  const line = scenario.transportTitles?.[transport] ?? TITLES[transport];
  return `### ${scenario.title} (${line})\n\n${writeTable(["", ...targets.map(({ title }) => title)], rows)}`;
}

function writeCell(cell) {
  if (cell === undefined) return "";
  const { median, low, high, notes = [] } = cell;
  const range = low === high ? "" : ` (${round(low)}–${round(high)})`;
  return [`${round(median)}${range}`, ...notes].join(", ");
}

export function writeGoals(goals) {
  const rows = goals.map(({ title, transport, limit, measured, unit, reached }) => [
    title,
    TITLES[transport],
    limit,
    measured === undefined ? "" : `${writeCell(measured)}${unit}`,
    reached === undefined ? "not measured" : reached ? "reached" : "**not reached**",
  ]);
  return `### Goals\n\n${writeTable(["", "line", "goal", "measured", ""], rows)}`;
}

/** Three significant digits; whole numbers from 100. */
export function round(number) {
  if (!Number.isFinite(number)) return "never";
  if (Math.abs(number) >= 100) return Math.round(number).toLocaleString("en-US");
  return String(Number(number.toPrecision(3)));
}

export function writeTable(head, rows) {
  const all = [head, ...rows];
  const widths = head.map((_, at) => Math.max(...all.map((row) => row[at].length), 3));
  const line = (row) => `| ${row.map((cell, at) => cell.padEnd(widths[at])).join(" | ")} |`;
  const rule = `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`;
  return [line(head), rule, ...rows.map(line)].join("\n");
}
