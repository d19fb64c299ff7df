/** Checks a tool that the author of a project has written. */

import { ConfigError } from "../errors.ts";
import { isRecord } from "../protocol/json.ts";
import { fieldNames, isFunction, meantField, requiredText } from "./fields.ts";
import type { Tool, ToolApprovalRules, ToolDefinition, ToolTextsDefinition } from "./tool-definition.ts";
import { type ParameterSchema, readParameters } from "./tool-schema.ts";
import { checkWords } from "./tool-words.ts";

const DEFAULT_TOOL_TIMEOUT_MS = 30_000;
const TOOL_FIELDS = fieldNames<ToolDefinition>({
  name: true,
  description: true,
  parameters: true,
  execute: true,
  timeoutMs: true,
  needsApproval: true,
  approvalText: true,
  editable: true,
  danger: true,
  title: true,
  running: true,
  done: true,
  expose: true,
});

const TEXT_FIELDS = fieldNames<ToolTextsDefinition>({
  title: true,
  running: true,
  done: true,
  expose: true,
  approvalText: true,
  danger: true,
});

/** @throws ConfigError that names the field and says what is right */
export function checkTool(definition: unknown, index: number): Tool {
  const at = `tools[${index}]`;
  if (!isRecord(definition)) throw new ConfigError(`${at} must be an object: tool({ … }).`);
  const { execute, timeoutMs = DEFAULT_TOOL_TIMEOUT_MS } = definition;
  const name = requiredText(definition, "name", `${at}.name`);
  if (!/^[a-zA-Z0-9_-]{1,64}$/.test(name)) {
    throw new ConfigError(`${at}.name must be 1 to 64 letters, digits, "_" or "-", but is "${name}".`);
  }
  refuseMisspeltFields(definition, name);
  if (typeof execute !== "function")
    throw new ConfigError(`The tool "${name}" has no execute function. Add execute: (args) => …`);
  if (typeof timeoutMs !== "number" || !(timeoutMs > 0 && timeoutMs < 2 ** 31)) {
    throw new ConfigError(`timeoutMs of the tool "${name}" must be a number of milliseconds above 0.`);
  }
  return {
    ...checkWords(definition, name),
    description: requiredText(definition, "description", `description of the tool "${name}"`),
    parameters: checkParameters(definition.parameters, name),
    timeoutMs,
    approval: checkApproval(definition, name),
    execute: (args, context) => execute.call(definition, args, context),
  };
}

/** Tools that run elsewhere, of which only what people read is known. */
export function checkToolTexts({ toolTexts = {} }: Record<string, unknown>): Tool[] {
  if (!isRecord(toolTexts) || Array.isArray(toolTexts) || !Object.values(toolTexts).every(isRecord)) {
    throw new ConfigError(
      'toolTexts must be an object by names of tools, such as { cancel_order: { title: "Cancel" } }.',
    );
  }
  return Object.entries(toolTexts as Record<string, Record<string, unknown>>).map(([name, definition]) => {
    const field = Object.keys(definition).find((one) => !TEXT_FIELDS.includes(one));
    if (field !== undefined) {
      const meant = meantField(field, TEXT_FIELDS);
      const advice = meant === undefined ? `The fields are ${TEXT_FIELDS.join(", ")}.` : `Did you mean ${meant}?`;
      throw new ConfigError(`toolTexts.${name} has a field ${field}, which does nothing. ${advice}`);
    }
    const { approvalText, danger = false } = definition;
    const asks = approvalText !== undefined || danger !== false;
    return {
      ...checkWords(definition, name),
      runsElsewhere: true,
      description: "",
      parameters: checkParameters({ type: "object" }, name),
      timeoutMs: DEFAULT_TOOL_TIMEOUT_MS,
      approval: asks ? checkApproval({ approvalText, danger, needsApproval: true }, name) : undefined,
      execute: () => undefined,
    };
  });
}

function checkApproval(definition: Record<string, unknown>, name: string): ToolApprovalRules | undefined {
  const { needsApproval = false, approvalText: text, editable = false, danger = false } = definition;
  if (typeof needsApproval !== "boolean" && !isFunction(needsApproval)) {
    throw new ConfigError(`needsApproval of the tool "${name}" must be true, false or a function that says which.`);
  }
  if (text !== undefined && !isFunction(text)) {
    throw new ConfigError(`approvalText of the tool "${name}" must be a function that returns a text.`);
  }
  for (const [field, value] of Object.entries({ editable, danger })) {
    if (typeof value !== "boolean") throw new ConfigError(`${field} of the tool "${name}" must be true or false.`);
  }
  if (needsApproval !== false) {
    const isNeeded = isFunction(needsApproval) ? needsApproval.bind(definition) : () => true;
    return { isNeeded, text: text?.bind(definition), editable: editable === true, danger: danger === true };
  }
  const idle = Object.entries({ approvalText: text !== undefined, editable, danger }).find(([, isSet]) => isSet)?.[0];
  if (idle === undefined) return undefined;
  throw new ConfigError(`${idle} of the tool "${name}" does nothing without needsApproval. Add needsApproval: true.`);
}

/** A tool may be an object with fields of its own: only those count as wrong that stand for a missing one. */
function refuseMisspeltFields(definition: Record<string, unknown>, name: string): void {
  for (const field of Object.keys(definition).filter((one) => !TOOL_FIELDS.includes(one))) {
    const meant = meantField(field, TOOL_FIELDS);
    if (meant === undefined || definition[meant] !== undefined) continue;
    throw new ConfigError(`The tool "${name}" has a field ${field}, which does nothing. Did you mean ${meant}?`);
  }
}

function checkParameters(parameters: unknown, toolName: string): ParameterSchema {
  try {
    return readParameters(parameters, toolName);
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    throw new ConfigError(`parameters of the tool "${toolName}" ${problem}.`);
  }
}
