import { randomUUID } from "node:crypto";
import type { HistoryToolCall } from "../protocol/chat.ts";
import { asString, isRecord, type Json, tryParse } from "../protocol/json.ts";
import { callArguments } from "./call-arguments.ts";
import { CALL_FIELDS, ExtraFields, FUNCTION_FIELDS } from "./extra-fields.ts";
import { UpstreamGarbage } from "./failures.ts";
import { callsOf } from "./history.ts";
import type { ModelRequest, TurnFinish } from "./provider.ts";

/** How the answer ended that the calls are part of. */
export interface AnswerEnd {
  readonly finish: TurnFinish;
  /** `false`: the stream is over, but nothing said that the model had finished. */
  readonly isSure?: boolean;
  /** Whether a call is the last thing in it. */
  readonly endsInCall: boolean;
  /** The conversation so far, none of whose ids is given again, and the tools that may be called. */
  readonly request: Pick<ModelRequest, "messages" | "setup">;
}

interface PartialCall {
  id: string;
  name: string;
  arguments: string;
  extra: ExtraFields;
  functionExtra: ExtraFields;
}

/**
 * Puts streamed tool-call pieces together. Servers differ in how they mark the pieces of a call, so a piece goes
 * to the call with its id, else to the one at its index, else to the latest. A new id under an old index
 * is a new call, and so is a name after whole arguments, if the index is not the same too.
 */
export class ToolCallAssembler {
  readonly #calls: PartialCall[] = [];
  readonly #byId = new Map<string, PartialCall>();
  readonly #byIndex = new Map<number, PartialCall>();

  /** Takes one element of `delta.tool_calls`. */
  add(piece: Json): void {
    const call = this.#find(piece);
    const fn = isRecord(piece.function) ? piece.function : {};
    call.name ||= asString(fn.name);
    // Some servers send the arguments as the object itself.
    call.arguments += isRecord(fn.arguments) ? JSON.stringify(fn.arguments) : asString(fn.arguments);
    for (const [name, value] of Object.entries(piece)) if (!PIECE_FIELDS.has(name)) call.extra.add(name, value);
    for (const [name, value] of Object.entries(fn)) if (!FUNCTION_FIELDS.has(name)) call.functionExtra.add(name, value);
  }

  /**
   * The calls that were made, in the order in which they began: none in an answer that was withheld, and not the one
   * that was cut, by the token limit or because the stream ended there. @throws UpstreamGarbage for one without a name
   */
  finish({ finish, isSure = true, endsInCall, request: { messages, setup } }: AnswerEnd): HistoryToolCall[] {
    if (finish === "content_filter") return [];
    const used = new Set(callsOf(messages).map(({ id }) => id));
    const isCut = !isSure || (finish === "length" && endsInCall);
    const last = endsInCall ? this.#calls.at(-1) : undefined;
    return this.#calls.flatMap((call) => {
      const written = callArguments(call.arguments, call.name, setup.tools);
      // One that was cut before its arguments began would look like one that has none.
      const isWhole = call.arguments.trim() === "" ? call !== last : tryParse(written) !== undefined;
      if (isCut && !isWhole) return [];
      if (call.name === "") throw new UpstreamGarbage("a tool call has no name");
      // A server that counts from zero in each turn would give the same id to two calls of a conversation.
      const id = call.id === "" || used.has(call.id) ? mintId(used) : call.id;
      used.add(id);
      const called = { ...call.functionExtra.toObject(), name: call.name, arguments: written };
      return [{ ...call.extra.toObject(), id, type: "function" as const, function: called }];
    });
  }

  #find(piece: Json): PartialCall {
    const id = asString(piece.id);
    const index = typeof piece.index === "number" ? piece.index : undefined;
    let call = id === "" ? this.#withoutId(piece, index) : this.#withId(id, piece, index);
    if (call === undefined) {
      call = { id, name: "", arguments: "", extra: new ExtraFields(), functionExtra: new ExtraFields() };
      this.#calls.push(call);
    }
    if (id !== "") {
      call.id = id;
      this.#byId.set(id, call);
    }
    if (index !== undefined) this.#byIndex.set(index, call);
    return call;
  }

  #withId(id: string, piece: Json, index: number | undefined): PartialCall | undefined {
    const known = this.#byId.get(id);
    if (index === undefined) return known;
    const atIndex = this.#byIndex.get(index);
    // Servers that make the id of the tool's name give the same one to parallel calls of it.
    if (known !== undefined) {
      return known !== atIndex && beginsAnother(known, piece) ? undefined : known;
    }
    return atIndex?.id === "" && !beginsAnother(atIndex, piece) ? atIndex : undefined;
  }

  #withoutId(piece: Json, index: number | undefined): PartialCall | undefined {
    if (index !== undefined) {
      const atIndex = this.#byIndex.get(index);
      return atIndex && beginsAnother(atIndex, piece) ? undefined : atIndex;
    }
    const latest = this.#calls.at(-1);
    // With neither id nor index, a second name is the only sign of a second call.
    return isNamed(piece) && latest?.name ? undefined : latest;
  }
}

function isNamed({ function: fn }: Json): boolean {
  return isRecord(fn) && asString(fn.name) !== "";
}

/**
 * Whether the piece cannot belong to the call, although id and index allow it: it brings a name, and the
 * arguments are whole. Servers that send whole calls may number them all 0.
 */
function beginsAnother(call: PartialCall, piece: Json): boolean {
  if (call.name === "" || !isNamed(piece)) return false;
  // Arguments that are not whole yet: a server that repeats the name in each piece.
  return isRecord(tryParse(call.arguments));
}

const PIECE_FIELDS = new Set([...CALL_FIELDS, "index"]);

/** Nine letters and digits: Mistral's models take no other form, and all others take this one. */
function mintId(used: ReadonlySet<string>): string {
  for (;;) {
    const id = randomUUID().replaceAll("-", "").slice(0, 9);
    if (!used.has(id)) return id;
  }
}
