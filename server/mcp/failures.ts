/** Failures of MCP servers: whether a call may be repeated, and what the model and the log are told. */

import { plainText } from "../agent/plain-text.ts";
import { ToolError } from "../agent/tool-definition.ts";
import { Late } from "../config/within.ts";
import { isRecord } from "../protocol/json.ts";
import { ForgottenSession, NO_ANSWER } from "./transport.ts";

/** Whether the server has not seen the request. */
export function hasNotRun(error: unknown): boolean {
  return causesOf(error).some((one) => {
    const { code, message } = isRecord(one) ? one : {};
    return one instanceof ForgottenSession || NOT_SENT.includes(String(code)) || message === "Not connected";
  });
}

const NOT_SENT = ["ECONNREFUSED", "ENOTFOUND", "NOT_CONNECTED"];

/** What a failed call throws. A failure that the author should see has a cause. */
export function callFailure(error: unknown, server: string, timeoutMs: number): ToolError | Late {
  const { code, status, message } = isRecord(error) ? error : {};
  if (code === "REQUEST_TIMEOUT") return new Late(timeoutMs);
  if (isRefusal(error)) return new ToolError(`The tool server ${server} refused the call: ${message}`);
  if (hasNotRun(error)) return new ToolError(`The tool server ${server} cannot be reached.`);
  const about = `The call to the tool server ${server} failed`;
  if (typeof status === "number") return new ToolError(`${about} with the status ${status}.`, { cause: error });
  return new ToolError(`${about}. It may have been carried out.`, { cause: error });
}

/** Whether the server has answered with an error. */
export function isRefusal(error: unknown): boolean {
  const code = isRecord(error) ? error.code : undefined;
  return typeof code === "number" && code !== NO_ANSWER;
}

/** Whether the server refuses this user. */
export function isRefusedUser(error: unknown): boolean {
  return causesOf(error).some((one) => isRecord(one) && (one.status === 401 || one.status === 403));
}

/** Why a server is away, as a sentence. */
export function reasonOf(error: unknown): string {
  const [deepest] = causesOf(error).reverse();
  if (deepest instanceof Late) return `It ${deepest.message}.`;
  const { message, code, status, path } = isRecord(deepest) ? deepest : {};
  if (code === "ECONNREFUSED") return "Nothing listens at its address.";
  if (code === "ENOTFOUND") return "Its host has no address.";
  if (code === "ENOENT") return `There is no command ${path}, or no folder to start it in.`;
  const [line = ""] = String(message ?? deepest).split("\n", 1);
  const text = plainText(line).slice(0, 300).replace(/\.?$/, ".");
  return typeof status === "number" && !text.includes(String(status)) ? `${text} The status is ${status}.` : text;
}

function causesOf(error: unknown): unknown[] {
  const causes: unknown[] = [];
  for (let one = error; one !== undefined && causes.length < 10; one = isRecord(one) ? one.cause : undefined) {
    causes.push(one);
    // A host with several addresses fails once for each.
    if (one instanceof AggregateError) causes.push(...one.errors);
  }
  return causes;
}
