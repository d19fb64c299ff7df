/** Records of the log as short lines for a person on a terminal: one for a run, one more if it failed. */

type Record = { [name: string]: string | number | undefined };

const MAX_QUESTION_CHARS = 60;

/** "" for records that are left out. */
export function prettyRecord(record: Record): string {
  const text = textOf(record);
  if (text === "") return "";
  const time = new Date(String(record.time)).toTimeString().slice(0, 8);
  return `${time} ${printable(text)}\n`;
}

function textOf(record: Record): string {
  switch (record.msg) {
    case "run":
      return runText(record);
    case "request":
      // What went well is seen as a run, or not of interest.
      if (Number(record.status) < 400) return "";
      return [`${record.method} ${record.route} ${record.status}`, record.error, `${record.ms} ms`, record.request_id]
        .filter(Boolean)
        .join("  ");
    case "model":
    case "tool":
      return `${record.msg} ${record.name} ${record.outcome}  ${record.ms} ms  ${record.run_id}`;
    case "approval":
      return `${record.decision} ${record.tool}  ${record.run_id}`;
    case "failure":
      return [`failure: ${record.error}`, record.run_id].filter(Boolean).join("  ");
    default:
      return record.level === "warn" ? `warning: ${record.text}` : String(record.text);
  }
}

function runText(record: Record): string {
  const { question, steps, model, end, input_tokens: input, output_tokens: output, ms } = record;
  const isAnswered = end === "stop";
  return [
    question === undefined ? `run ${record.run_id}` : `"${firstWords(String(question))}"`,
    steps,
    model,
    input === undefined ? "" : `${Number(input) + Number(output)} tokens`,
    `${(Number(ms) / 1000).toFixed(1)} s`,
    isAnswered ? "" : `${record.level === "warn" ? "✗ " : ""}${end}`,
  ]
    .filter(Boolean)
    .join("  ");
}

export function firstWords(question: string): string {
  const words = question.replace(/\s+/g, " ").trim();
  if (words.length <= MAX_QUESTION_CHARS) return words;
  const cut = words.slice(0, MAX_QUESTION_CHARS).toWellFormed();
  return `${cut.slice(0, Math.max(cut.lastIndexOf(" "), 1))}…`;
}

/** Text from outside must not write colours of its own, and a line of its own is indented. */
export function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is removed.
  const controls = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029]/g;
  return text.replace(controls, "?").replace(/\n(?! )/g, "\n  ");
}
