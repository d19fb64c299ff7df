/** Names and ids as Converse takes them, whichever provider or person they come from. */

import { familyOf } from "./family.ts";

/** Gives each tool call of a history an id that the model takes, and its result the same one. */
export class ToolUseIds {
  readonly #form: RegExp;
  readonly #used = new Set<string>();
  readonly #latest = new Map<string, string>();

  constructor(model: string) {
    this.#form = idForm(model);
  }

  /** The id for a call. */
  begin(id: string): string {
    const own = this.#form.test(id) && !this.#used.has(id) ? id : this.#mint();
    this.#used.add(own);
    this.#latest.set(id, own);
    return own;
  }

  /** The id for the result of the latest call that had this id. */
  answer(id: string): string {
    return this.#latest.get(id) ?? id;
  }

  /** Counted, not random: a model's reasoning may be bound to the history that it was given. */
  #mint(): string {
    for (let count = this.#used.size; ; count++) {
      const id = `call${String(count).padStart(5, "0")}`;
      if (!this.#used.has(id)) return id;
    }
  }
}

function idForm(model: string): RegExp {
  switch (familyOf(model).maker) {
    case "mistral":
      return /^[a-zA-Z0-9]{9}$/;
    case "kimi":
      // It names its calls "functions.read_file:1" and goes by that.
      return /^[\w.:-]{1,64}$/;
    default:
      return /^[\w-]{1,64}$/;
  }
}

/** A tool's name; a model may have made one up that the API would refuse. */
export function toolUseName(name: string): string {
  return name.replaceAll(/[^\w-]/g, "_").slice(0, 64) || "_";
}

/** Longest document name, and room for a number after it. */
const MAX_NAME_CHARS = 190;

/** Names documents after their files; two of one request must not have the same name. */
export class DocumentNames {
  readonly #used = new Set<string>();

  /**
   * Letters and digits of ASCII, single spaces, hyphens, parentheses and square brackets are all that is taken.
   * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_DocumentBlock.html
   */
  name(filename: string): string {
    const plain = filename
      .replace(/\.pdf$/i, "")
      .normalize("NFKD")
      .replaceAll(/\p{Mark}/gu, "")
      .replaceAll(/[^a-zA-Z0-9()[\]-]+/g, " ")
      .trim()
      .slice(0, MAX_NAME_CHARS)
      .trim();
    const base = plain === "" ? "document" : plain;
    let name = base;
    for (let count = 2; this.#used.has(name); count++) name = `${base} (${count})`;
    this.#used.add(name);
    return name;
  }
}
