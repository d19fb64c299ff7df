/** What a module exports beside its agent: checked, so that nothing of it is off in silence. */

import { nearestName } from "../config/nearest-name.ts";
import { ConfigError } from "../errors.ts";
import { AGENT_FIELDS, checkAgent, HOOKS } from "./define.ts";
import { OF_MODELS } from "./run-function.ts";
import type { AgentModule } from "./served-agent.ts";

/** Functions that a module may export beside its agent, and what they do. */
const FUNCTIONS = {
  close: "closes what the module has opened",
  authenticate: "says who sends a message",
};

/** Most slips in the name of a function that would do nothing, in silence. `answer` and `clone` are names of their own. */
const SLIPS = { authenticate: 3, close: 0, onMessage: 1, onAnswer: 1, onRunEnd: 1, onFeedback: 1 };

/** @throws ConfigError that names the export and says where it belongs */
export function checkModule(exports: Readonly<Record<string, unknown>>): AgentModule {
  const agent = checkAgent(exports.default);
  for (const [name, does] of Object.entries(FUNCTIONS)) {
    const value = exports[name];
    if (value === undefined || typeof value === "function") continue;
    throw new ConfigError(`${name} must be a function that ${does}.`);
  }
  const definition = exports.default as Record<string, unknown>;
  refuseFieldsBeside(definition, exports);
  refuseMisspelt(definition, exports);
  const { close, authenticate, devUsers } = exports as Pick<AgentModule, "close" | "authenticate" | "devUsers">;
  return { agent, close, authenticate, devUsers };
}

/** What the agent has itself may be exported, too, such as its tools for a test; a hook then has to be the same. */
function refuseFieldsBeside(agent: Record<string, unknown>, exports: Readonly<Record<string, unknown>>): void {
  for (const [name, kinds] of Object.entries(AGENT_FIELDS)) {
    const value = exports[name];
    if (!kinds.includes(typeof value) || value === agent[name]) continue;
    const isHook = HOOKS.some((hook) => hook === name);
    // What an agent of a framework is made of is no field of ours.
    if (!isHook && (agent[name] !== undefined || (agent.run !== undefined && OF_MODELS.includes(name)))) continue;
    throw new ConfigError(
      `${name} is exported beside the agent, where it does nothing. Make it a field: defineAgent({ ${name}, … }). If it is something else, give it another name.`,
    );
  }
}

function refuseMisspelt(agent: Record<string, unknown>, exports: Readonly<Record<string, unknown>>): void {
  const functions = Object.keys(exports).filter((name) => typeof exports[name] === "function");
  for (const [name, most] of Object.entries(SLIPS)) {
    if (exports[name] !== undefined || agent[name] !== undefined) continue;
    const misspelt = nearestName(name, functions, most);
    if (misspelt === undefined) continue;
    const meant = Object.hasOwn(FUNCTIONS, name) ? name : `${name}, a field of the agent`;
    throw new ConfigError(`${misspelt} is exported, which does nothing. Did you mean ${meant}?`);
  }
}
