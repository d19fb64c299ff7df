/** The built-in model: no key, no network, the same answer every time, and it says that it is a script. */

import { setTimeout as sleep } from "node:timers/promises";
import { decodedBytes } from "../../protocol/attachments.ts";
import type { FilePart, HistoryMessage, ToolMessage } from "../../protocol/chat.ts";
import { ApiError } from "../../protocol/errors.ts";
import { isRecord } from "../../protocol/json.ts";
import { assistantMessage, callsOf, fileOf, outputText, partsOf, textOf, toHistoryCall } from "../history.ts";
import type { ModelEvent, ModelRequest, ToolCall, ToolSpec } from "../provider.ts";
import { endOfTurn } from "../stream-pieces.ts";

/** Milliseconds between two words: about the speed of a hosted model. */
const WORD_MS = 12;
const SLOW_WORD_MS = 400;

/** No request leaves the process: observers see what a real model would be sent, and the events of this one. */
export async function* demoModel(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelEvent[]> {
  const seen = request.observer?.sending?.({ id: "demo", model: "demo" });
  seen?.sent({ body: { ...request.setup, messages: request.messages } });
  seen?.streams({ headers: new Headers() });
  try {
    for await (const batch of play(request, signal)) {
      for (const event of batch) seen?.message(event.type, { ...event });
      yield batch;
    }
    seen?.ended({ type: "complete" });
  } catch (error) {
    if (!signal.aborted) seen?.ended({ type: "failed", error });
    throw error;
  } finally {
    seen?.ended({ type: "aborted", reason: signal.reason });
  }
}

/** Plays what the script plans, word by word. */
async function* play(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelEvent[]> {
  let said = "";
  let words = 0;
  const calls: ToolCall[] = [];
  for (const step of planDemo(request)) {
    switch (step.type) {
      case "text":
      case "thinking":
        for (const delta of step.text.match(/\s*\S+\s*$|\s*\S+/g) ?? []) {
          await sleep(step.wordMs ?? WORD_MS, undefined, { signal });
          if (step.type === "text") said += delta;
          words++;
          yield [{ type: step.type, delta }];
        }
        break;
      case "call":
        calls.push(step.call);
        break;
      case "fail":
        throw new ApiError("provider_error", step.message);
    }
  }
  const message = assistantMessage(said, calls.map(toHistoryCall));
  // Counted before `keep` adds the answer to the messages.
  const usage = { input_tokens: countWords(request), output_tokens: words };
  request.keep(message);
  yield endOfTurn(message, "stop", usage);
}

/** The demo has no tokenizer; a word counts as one token. */
function countWords({ messages }: ModelRequest): number {
  const texts = messages.map(({ content }) => (typeof content === "string" ? content : ""));
  return texts.join(" ").split(/\s+/).filter(Boolean).length;
}

/** One thing that the demo does; `wordMs` is the pause before each word. */
type DemoStep =
  | { type: "text" | "thinking"; text: string; wordMs?: number }
  | { type: "call"; call: ToolCall }
  | { type: "fail"; message: string };

const say = (text: string): DemoStep => ({ type: "text", text });
const think = (text: string): DemoStep => ({ type: "thinking", text });

/** Plans one model turn from the whole conversation; the same conversation gives the same plan. */
function planDemo({ messages, setup: { tools } }: ModelRequest): DemoStep[] {
  const results = resultsAtEnd(messages);
  if (results.length > 0) return [say(summaryOf(messages, results))];
  const users = messages.filter((message) => message.role === "user");
  const parts = users.slice(-1).flatMap(partsOf);
  const text = textOf(parts);
  const files = parts.filter((part) => part.type !== "text");
  if (files.length > 0) return [say(descriptionOf(files))];
  if (/\b(?:error|fail)\b/i.test(text)) return ERROR;
  if (/\bslow(?:ly)?\b/i.test(text)) return SLOW;
  if (/\b(?:markdown|table|code|formula|footnote|long)\b/i.test(text)) return [say(MARKDOWN_SAMPLE)];
  const calls = chooseCalls(text, tools, messages.length);
  if (calls.length > 0) return useTools(calls);
  return /\bthink/i.test(text) ? THOUGHTS : [say(introduction(text, users.length, tools))];
}

const ERROR: DemoStep[] = [
  say("You asked for an error, so this answer breaks off here: "),
  { type: "fail", message: "This is the error that you asked the demo model for." },
];

const SLOW: DemoStep[] = [
  {
    type: "text",
    wordMs: SLOW_WORD_MS,
    text: "This answer is slow on purpose: a few words each second, as from a large model under load. You can press Stop at any time. What was said so far stays, and the conversation goes on from there. While you wait, you can already type the next message, scroll back, open a tool call or switch the theme. That is all: thank you for your patience.",
  },
];

const THOUGHTS: DemoStep[] = [
  think(
    "The user would like to see how reasoning is shown. I have none of my own, since I am a script, but a reasoning model streams its thoughts just like this.\n\nThey arrive before the answer, as events of their own, and are folded away once the answer begins. Now I can answer.",
  ),
  say(
    "What you saw above is how a model's reasoning appears: it streams while the model thinks and folds away when the answer begins. Click **Thinking** to read it again.",
  ),
];

function useTools(calls: readonly ToolCall[]): DemoStep[] {
  const names = [...new Set(calls.map(({ name }) => name))].join(" and ");
  const times = calls.length > 1 ? `${calls.length} calls, which can run in parallel` : "one call";
  return [
    think(`This needs ${names}: ${times}.`),
    say(calls.length > 1 ? "Let me look these up together." : "Let me look that up."),
    ...calls.map((call): DemoStep => ({ type: "call", call })),
  ];
}

/** The results that the model has not answered yet. */
function resultsAtEnd(messages: readonly HistoryMessage[]): ToolMessage[] {
  const start = messages.findLastIndex(({ role }) => role !== "tool") + 1;
  return messages.slice(start).filter((message) => message.role === "tool");
}

function summaryOf(messages: readonly HistoryMessage[], results: readonly ToolMessage[]): string {
  const names = new Map(callsOf(messages).map((call) => [call.id, call.function.name]));
  const rows = results.map((result) => {
    const { tool_call_id: id } = result;
    return `| \`${names.get(id) ?? id}\` | ${cell(outputText(result))} |`;
  });
  return `Here is what the tools answered:\n\n| Tool | Answer |\n|---|---|\n${rows.join("\n")}\n\nA real model would now tell you what this means. I am only a demo, so I hand it on as it is.`;
}

function cell(content: string): string {
  const line = content.replaceAll("|", "\\|").replace(/\s+/g, " ").trim();
  return line.length > 300 ? `${line.slice(0, 300)}…` : line || "*nothing*";
}

function descriptionOf(files: readonly FilePart[]): string {
  const items = files.map((part) => {
    const { name, mediaType, base64 } = fileOf(part);
    const title = part.type === "file" ? `**${name}**` : name;
    return `- ${title}: \`${mediaType}\`, ${decodedBytes(base64).toLocaleString("en")} bytes`;
  });
  const [count, them] = files.length === 1 ? ["one file", "it"] : [`${files.length} files`, "them"];
  return `I received ${count}:\n\n${items.join("\n")}\n\nI am a demo and cannot look inside. A model such as OpenAI's would now read ${them}.`;
}

function introduction(text: string, turn: number, tools: readonly ToolSpec[]): string {
  const heard = text.length > 200 ? `${text.slice(0, 200)}…` : text;
  const count = turn === 1 ? "the first message" : `message ${turn}`;
  const offers = [
    ...offersOf(tools),
    "**Show me Markdown** streams a long answer with a table, code, a formula and a footnote",
    "**Think about it** shows reasoning",
    "**Answer slowly** gives you time to press Stop",
    "**Give me an error** shows a failure and Retry",
    "Or attach an image or a PDF",
  ];
  return `I am Parley's built-in **demo model**: a script that needs no key and no network, not an AI. This is ${count} of our conversation, and you wrote:\n\n> ${heard.replaceAll("\n", "\n> ")}\n\nTry one of these:\n\n${offers.map((offer) => `- ${offer}`).join("\n")}`;
}

/** How many of the agent's tools are named at most. */
const MAX_OFFERS = 5;

/** What to write to see the agent's tools at work. */
function offersOf(tools: readonly ToolSpec[]): string[] {
  if (tools.some(({ name }) => name === "get_weather")) {
    return [
      "**What is the weather in Paris and Tokyo?** calls a tool twice, in parallel",
      "**Cancel my order 1007** asks for your approval first",
    ];
  }
  const offers = tools.slice(0, MAX_OFFERS).map(({ name }) => `**${wordsOf(name).join(" ")}** runs \`${name}\``);
  return tools.length > 1 ? [...offers, `**Use your tools** runs all ${tools.length} of them`] : offers;
}

// The choice of tools: the demo matches words, where a real model would understand them.

/** Words of tool names that say nothing about the subject. */
const FILLERS = new Set(["get", "set", "list", "find", "the", "of", "a", "to", "my", "between"]);

/** Verbs that a message must contain to call their tool: asking for the status of an order must not cancel it. */
const DEEDS = new Set([
  "add",
  "book",
  "buy",
  "cancel",
  "change",
  "create",
  "delete",
  "pay",
  "refund",
  "remove",
  "send",
]);

/**
 * Calls tools with a word of their name in the message ("weather" for `get_weather`), those of `DEEDS` only for their verb, and
 * all for "tools". Names, numbers and quotations fill text arguments: one call for each if a tool takes one text.
 */
function chooseCalls(text: string, tools: readonly ToolSpec[], turn: number): ToolCall[] {
  const words = new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []);
  const names = properNames(text);
  const chosen = tools.filter((tool) => words.has("tools") || isMentioned(tool, words));
  return chosen
    .flatMap((tool) => argumentsFor(tool, names).map((args) => ({ name: tool.name, args })))
    .map(({ name, args }, index) => ({ id: `demo_${turn}_${index + 1}`, name, arguments: JSON.stringify(args) }));
}

function isMentioned({ name }: ToolSpec, words: ReadonlySet<string>): boolean {
  const [verb = "", ...rest] = wordsOf(name);
  if (DEEDS.has(verb)) return words.has(verb);
  return [verb, ...rest].some((word) => !FILLERS.has(word) && words.has(word));
}

/** "find" and "order" of `findOrder` or `find_order`. */
function wordsOf(name: string): string[] {
  return name
    .replace(/([a-z])([A-Z])/g, "$1_$2")
    .toLowerCase()
    .split(/[_-]+/)
    .filter((word) => word !== "");
}

/** Quoted text, words with a digit, and capitalised words that do not begin a sentence. */
function properNames(text: string): string[] {
  const found = text.matchAll(/["“„]([^"“”]+)["“”]|[\p{L}\d-]*\d[\p{L}\d-]*|(?<![.!?]\s*|^\s*)\p{Lu}\p{Ll}+/gu);
  return [...found].map(([name, quoted]) => quoted ?? name);
}

function argumentsFor(tool: ToolSpec, names: readonly string[]): Record<string, unknown>[] {
  const { properties, required } = tool.parameters;
  const fields = Object.entries(isRecord(properties) ? properties : {})
    .filter(([name]) => Array.isArray(required) && required.includes(name))
    .map(([name, schema]) => ({ name, schema: isRecord(schema) ? schema : {} }));
  const textFields = fields.filter(({ schema }) => isFreeText(schema));
  const rounds = textFields.length === 1 && names.length > 1 ? names.map((name) => [name]) : [names];
  return rounds.map((round) => {
    const left = [...round];
    return Object.fromEntries(
      fields.map(({ name, schema }) => [name, (isFreeText(schema) ? left.shift() : undefined) ?? sample(schema)]),
    );
  });
}

function isFreeText(schema: Record<string, unknown>): boolean {
  return schema.type === "string" && schema.enum === undefined && schema.const === undefined;
}

/** A value that the schema's author offers, else the plainest of its type. */
function sample(schema: Record<string, unknown>): unknown {
  const [offered] = [schema.examples, schema.enum].flatMap((list) => (Array.isArray(list) ? list : []));
  const named = schema.const ?? schema.default ?? offered;
  if (named !== undefined) return named;
  switch (schema.type) {
    case "number":
    case "integer":
      return typeof schema.minimum === "number" ? schema.minimum : 1;
    case "boolean":
      return true;
    case "array":
      return [];
    case "object":
      return {};
    default:
      return "example";
  }
}

/** A long answer with everything that Markdown has, for seeing how it streams and looks. */
export const MARKDOWN_SAMPLE = `# A tour of Markdown

Answers may be **bold**, *italic*, ~~struck~~ or \`inline code\`, and link to [a page](https://commonmark.org/help/).

## Lists

1. Numbered items
2. with a nested list:
   - one
   - two
     - and deeper
3. and back.

- [x] Task lists
- [ ] with an open item

## Code

\`\`\`ts
import { defineAgent, tool } from "parley-agent";

export default defineAgent({
  name: "Acme Support",
  model: "openai/gpt-5.2",
  instructions: "You are a friendly support agent.",
});
\`\`\`

\`\`\`bash
curl http://127.0.0.1:8080/api/chat \\
  -H "content-type: application/json" \\
  -d '{"message": "Hello", "stream": false}'
\`\`\`

## A table

| Transport | Direction | Good for | Example |
|:----------|:---------:|:---------|--------:|
| JSON      | one reply | scripts  | \`stream: false\` |
| SSE       | streamed  | servers, terminals | \`stream: true\` |
| WebSocket | both ways | browsers | \`/ws/chat\` |

## A formula

The length of a day is \\(\\frac{24}{\\pi} \\arccos(-\\tan\\varphi \\tan\\delta)\\) hours, where[^1]

\\[
\\delta \\approx 23.44^\\circ \\cdot \\sin\\frac{2\\pi(n - 81)}{365}
\\]

## A quote

> The chief virtue that language can have is clearness, and nothing detracts from it so much as the use of unfamiliar words.
>
> *Hippocrates, as quoted by Galen*

---

### The end

That was a heading, a rule, a quote, a table, code, a formula, a footnote and lists. Raw HTML such as <b>this</b> is shown as text, never run.

[^1]: On day *n* of the year, at the latitude \\(\\varphi\\).
`;
