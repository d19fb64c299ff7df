/** A mistake of the person who starts the server. The message is one sentence that says what to do. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

/** Wrong usage of the command, such as an option that it does not have. */
export class UsageError extends ConfigError {}

/** For the log: which tool of the project threw. `cause` is what it threw, which no client may see. */
export class ToolFailure extends Error {
  override readonly name = "ToolFailure";

  constructor(tool: string, thrown: unknown) {
    super(`The tool "${tool}" failed.`, { cause: thrown });
  }
}

/** For the log: what the author of an agent should know of its answers. `cause` is what their code threw. */
export class AgentNotice extends Error {
  override readonly name = "AgentNotice";
}
