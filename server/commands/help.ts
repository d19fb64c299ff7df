/** The help of each command. */

/** What its arguments, options and examples mean. */
const MEANINGS: Readonly<Record<string, string>> = {
  start: `  project         Folder with an agent.ts (or .mts, .js, .mjs) and, if needed, a .env file.
                  Default: the working directory or, if it has no agent, a built-in demo
                  agent that needs no key and no network.

Options
  --port <port>   Port to listen on; 0 picks a free one. Environment: PORT.
  --host <host>   Address to listen on; 0.0.0.0 lets other machines connect. Environment: HOST.
  --workers <n>   Number of processes that share the port; auto starts one per processor.
                  More than one needs Redis. Environment: PARLEY_WORKERS, PARLEY_REDIS_URL.
  --open          Open the chat page in your browser.

Examples
  parley start --open
  parley start ./my-agent --port 3000
`,
  dev: `  project         Folder with an agent.ts (or .mts, .js, .mjs) and, if needed, a .env file.
                  Default: the working directory.

Options
  --port <port>   Port to listen on, on this machine only; 0 picks a free one. Environment: PORT.
  --no-open       Do not open the chat page in your browser. Without a terminal it stays closed.
  --trace         Write each request to a model, and its answer, to .parley/trace.jsonl in the
                  project's folder. It holds what people write, and no key.
  --inspect[=<port>]  Let a debugger in, such as Chrome's (chrome://inspect) or your editor's.

Examples
  parley dev
  parley dev ./my-agent --port 3000 --inspect
`,
};

export function helpOf(name: string, { usage, summary }: { usage: string; summary: string }): string {
  return `Usage: parley ${usage}\n\n${summary}\n\n${MEANINGS[name]}`;
}
