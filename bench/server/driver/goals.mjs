/** What Parley is to reach, each judged by the ratios of one run. */

const BOTH = ["sse", "ws"];

/** `against` names the server that a limit is a multiple of; with `minus`, a difference. */
const GOALS = [
  {
    title: "CPU per token, 8 streams at full speed",
    metric: "saturation.cpu",
    lines: BOTH,
    against: "floor",
    most: 1.3,
  },
  {
    title: "CPU per token, 50 streams of 50 tokens/s",
    metric: "paced-50.cpu",
    lines: BOTH,
    against: "floor",
    most: 1.3,
  },
  {
    title: "streams of 30 tokens/s with 99 % of tokens less than 50 ms old",
    metric: "capacity.streams",
    lines: BOTH,
    against: "floor",
    least: 0.8,
  },
  {
    title: "token age p99 with 500 streams",
    metric: "paced-500.ageP99",
    lines: BOTH,
    against: "floor",
    most: 1.5,
  },
  {
    title: "first token, one stream, p50",
    metric: "first.firstP50",
    lines: BOTH,
    against: "floor",
    minus: true,
    most: 0.3,
    unit: "ms",
  },
  {
    title: "resident memory per idle WebSocket",
    metric: "idle.socket",
    lines: ["ws"],
    most: 8,
    unit: "KiB",
  },
  {
    title: "worst pause of running streams while four 20 MiB attachments arrive",
    metric: "attachments.pause",
    lines: BOTH,
    most: 50,
    unit: "ms",
  },
  {
    title: "disconnect to upstream closed",
    metric: "disconnect.p50",
    lines: BOTH,
    most: 50,
    unit: "ms",
  },
  ...Object.entries({ ms: "a plain object", demo: "the demo agent", typescript: "TypeScript" }).map(
    ([metric, project]) => ({
      title: `start-up to the first answered request, ${project}`,
      metric: `startup.${metric}`,
      lines: ["http"],
      against: "bare",
      most: 1.5,
    }),
  ),
  ...["page", "widget", "health"].map((file) => ({
    title: `CPU of a GET of ${{ page: "/", widget: "/widget.js", health: "/health" }[file]}`,
    metric: `files.${file}Cpu`,
    lines: ["http"],
    against: "floor",
    most: 2,
  })),
];

/** Each goal and line with what was measured: `reached` is `undefined` where something was not measured. */
export function judgeGoals(results) {
  return GOALS.flatMap((goal) => goal.lines.map((transport) => judge(goal, transport, results)));
}

function judge(goal, transport, results) {
  const [scenario, metric] = goal.metric.split(".");
  const where = { scenario, transport, metric };
  const cell =
    goal.against === undefined
      ? results.cell({ ...where, target: "parley" })
      : results.compare(where, "parley", goal.against, goal.minus);
  const { title, most, least } = goal;
  const reached = cell && (most === undefined ? cell.median >= least : cell.median <= most);
  return { title, transport, limit: describe(goal), measured: cell, unit: unitOf(goal), reached };
}

function unitOf({ against, minus, unit }) {
  return against === undefined || minus ? ` ${unit}` : " ×";
}

function describe({ against, minus, most, least, unit }) {
  const sign = most === undefined ? "≥" : "≤";
  const limit = most ?? least;
  if (against === undefined) return `${sign} ${limit} ${unit}`;
  return minus ? `${sign} ${against} + ${limit} ${unit}` : `${sign} ${limit} × ${against}`;
}
