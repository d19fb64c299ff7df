/** One table of all that was measured. A figure is the median of the rounds; a ratio is the median of those within each round. */

import { median } from "./order.mjs";
import { SCENARIOS } from "./scenarios.mjs";

const NAMES = { sse: "SSE", ws: "WebSocket", json: "JSON", openai: "Chat Completions" };

/** `measurements`: `{ scenario, transport, round, target, values }`. */
export function writeReport(measurements, targets) {
  const hasBefore = targets.some(({ name }) => name === "before");
  const head = [
    "",
    "",
    ...targets.map(({ title }) => title),
    "Parley / floor",
    ...(hasBefore ? ["Parley / before"] : []),
  ];
  const rows = [head];
  for (const { name, transports, metrics } of SCENARIOS) {
    for (const [metric, traits] of Object.entries(metrics)) {
      for (const transport of transports) {
        const measured = measurements.filter((one) => one.scenario === name && one.transport === transport);
        /** One figure for each round. */
        const figures = (target) => measured.filter((one) => one.target === target).map(({ values }) => values[metric]);
        if (measured.length > 0) rows.push(writeRow(traits, NAMES[transport], targets, figures, hasBefore));
      }
    }
  }
  return writeTable(rows);
}

function writeRow(metric, transport, targets, figures, hasBefore) {
  const cells = targets.map(({ name }) => withUnit(median(figures(name)), metric.unit));
  const ratioTo = (target) => compare(figures("parley"), figures(target), (ours, theirs) => ours / theirs);
  const before = hasBefore ? [judge(ratioTo("before"), "×", metric.before)] : [];
  return [metric.title, transport, ...cells, judgeGoal(metric, figures, ratioTo("floor")), ...before];
}

function compare(ours, theirs, combine) {
  return median(ours.map((value, round) => combine(value, theirs[round])).filter((value) => !Number.isNaN(value)));
}

function judgeGoal({ ratio, plus, most, more, unit }, figures, ratioToFloor) {
  if (most !== undefined) return judge(median(figures("parley")), unit, most);
  if (plus === undefined) return judge(ratioToFloor, "×", ratio, more);
  return judge(
    compare(figures("parley"), figures("floor"), (ours, floor) => ours - floor),
    `${unit} more`,
    plus,
  );
}

/** A value that misses its limit is bold. */
function judge(value, unit, limit, more = false) {
  const text = withUnit(value, unit);
  if (text === "" || limit === undefined) return text;
  const isReached = more ? value >= limit : value <= limit;
  return `${isReached ? text : `**${text}**`} (${more ? "≥" : "≤"} ${limit})`;
}

/** Three significant digits. */
function withUnit(number, unit) {
  if (Number.isNaN(number)) return "";
  if (!Number.isFinite(number)) return "never";
  const digits = Math.abs(number) >= 100 ? String(Math.round(number)) : String(Number(number.toPrecision(3)));
  return `${digits} ${unit}`.trimEnd();
}

export function writeTable(rows) {
  const widths = rows[0].map((_, column) => Math.max(3, ...rows.map((row) => row[column].length)));
  const line = (row) => `| ${row.map((cell, column) => cell.padEnd(widths[column])).join(" | ")} |`;
  const rule = widths.map((width) => "-".repeat(width));
  return [rows[0], rule, ...rows.slice(1)].map(line).join("\n");
}
