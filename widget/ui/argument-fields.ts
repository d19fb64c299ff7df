/** Fields to edit the arguments of a call, one for each value. Loaded when they are needed. */

import { html, nothing, type PropertyValues, type TemplateResult } from "lit";
import { repeat } from "lit/directives/repeat.js";
import { isRecord } from "../../server/protocol/json.ts";
import "../i18n/add-part-texts.ts";
import type { ToolBlock } from "../conversations/messages.ts";
import type { Strings } from "../i18n/strings.ts";
import styles from "../styles/argument-fields.css";
import { partSheets } from "../styles/part-sheets.ts";
import { isObject, labelOf, parse, textOf, wordsOf } from "./argument-values.ts";
import { ChatPart } from "./chat-part.ts";
import { iconButton } from "./controls.ts";
import { folded, hasFolds } from "./folded-text.ts";
import { icons } from "./icons.ts";
import { plain, readBack, writtenOut } from "./plain-text.ts";

/** Longer texts (in characters), or with line breaks, get a field of several lines: a phone would hide their end. */
const LONG_TEXT = 20;

/** Objects and lists with more values, or nested deeper, are edited as JSON. */
const MANY_FIELDS = 40;
const DEEPEST = 4;

type Schema = Readonly<Record<string, unknown>>;

/** `lines`: a list of texts or numbers, each on a line of its own. `group` and `list` contain fields. */
type Kind = "text" | "number" | "flag" | "choice" | "lines" | "json" | "group" | "list";

/** One value, and the text typed in its place. */
interface Field {
  readonly id: string;
  readonly name: string;
  /** JSON pointer into the edited arguments. */
  readonly pointer: string;
  readonly kind: Kind;
  readonly schema: Schema;
  /** The value in the call; `undefined` if the call leaves it out. */
  readonly before: unknown;
  /** The initial content of the control. */
  readonly text: string | boolean;
  readonly isRequired: boolean;
  children: readonly Field[];
  typed: string | boolean;
  /** Why the value is invalid. */
  wrong?: string | undefined;
}

let count = 0;

export class ArgumentFields extends ChatPart {
  static override readonly sheets = partSheets(styles);
  static override properties = { call: { attribute: false } };
  call!: ToolBlock;
  #root!: Field;
  /** The message around, marked so that it does not repeat below the card the errors shown at the fields. */
  #message: Element | null = null;

  override connectedCallback(): void {
    super.connectedCallback();
    this.#message = this.closest(".message");
    this.#message?.toggleAttribute("data-fields", true);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#message?.toggleAttribute("data-fields", false);
  }

  protected override willUpdate(changed: PropertyValues): void {
    // What was typed stays until the server has refused it.
    const before: ToolBlock | undefined = changed.get("call");
    if (!changed.has("call") || (before && before.decidedAt === this.call.decidedAt)) return;
    const { arguments: input, refused, approval } = this.call;
    const { problems = refused === undefined ? [] : [""] } = this.call;
    const schema = approval?.schema ?? {};
    const place = { root: schema, pointer: "", depth: 0, isRequired: true };
    this.#root = fieldOf("", parse(refused ?? input), schema, place);
    for (const problem of problems) {
      const { pointer = "", message = "" } = Object(problem);
      const said = `${this.context.strings.checkValue} \u2068${plain(`${message}`)}\u2069`;
      fieldAt(this.#root, `${pointer}`).wrong = said;
    }
  }

  /** The arguments if they were changed, else `{}`; `undefined` if one is invalid, whose field says why. */
  read(): { readonly arguments?: string } | undefined {
    const value = typedIn(this.#root, this.context.strings);
    this.requestUpdate();
    if (hasWrong(this.#root)) return undefined;
    const json = JSON.stringify(value);
    return json === JSON.stringify(parse(this.call.arguments)) ? {} : { arguments: json };
  }

  /** Focuses the first invalid field, or else the first field. */
  async focusField(): Promise<void> {
    await this.updateComplete;
    const find = (selector: string) => this.querySelector<HTMLElement>(selector);
    (find('[aria-invalid="true"], p.wrong') ?? find("input, select, textarea"))?.focus();
  }

  protected override render(): TemplateResult {
    return html`<div class="fields">${renderWrong(this.#root)} ${this.#renderChildren(this.#root)}</div>`;
  }

  #renderChildren(field: Field): unknown {
    return repeat(
      field.children,
      ({ id }) => id,
      (child, index) => this.#renderField(child, field.kind === "list" ? `${index + 1}` : child.name, field),
    );
  }

  #renderField(field: Field, name: string, parent: Field): TemplateResult {
    const label = html`<bdi>${folded(labelOf(name), this.context.strings)}</bdi>`;
    if (isMany(field)) {
      return html`<fieldset>
        <legend>${label} ${parent.kind === "list" ? this.#renderRemove(field, name, parent) : nothing}</legend>
        ${renderWrong(field)} ${this.#renderChildren(field)} ${this.#renderAdd(field)}
      </fieldset>`;
    }
    return html`<div class=${field.kind === "flag" ? "argument flag" : "argument"}>
      <label for=${field.id}>${label}</label>
      ${this.#renderControl(field)} ${renderWrong(field)}
    </div>`;
  }

  #renderRemove(field: Field, name: string, list: Field): TemplateResult {
    const remove = () => {
      this.context.actions.holdScroll();
      list.children = list.children.filter((it) => it !== field);
      this.requestUpdate();
    };
    const label = this.context.strings.remove(plain(`${labelOf(list.name)} ${name}`));
    const disabled = list.children.length <= Number(list.schema.minItems ?? 0);
    return iconButton("remove-element", label, icons.close, remove, { disabled });
  }

  /** The button that adds an element with the fields of its schema. */
  #renderAdd(list: Field): unknown {
    const { kind, name, pointer, schema, children } = list;
    const root = this.call.approval?.schema ?? {};
    const names = Object.keys(Object(resolved(schema.items, root).properties));
    if (kind !== "list" || names.length === 0) return nothing;
    const add = async () => {
      this.context.actions.holdScroll();
      const blank = Object.fromEntries(names.map((it) => [it, undefined]));
      count += 1;
      const place = { root, pointer: `${pointer}/${count}`, depth: pointer.split("/").length, isRequired: true };
      const element = fieldOf(`${count}`, blank, schema.items, place);
      list.children = [...children, element];
      this.requestUpdate();
      await this.updateComplete;
      this.querySelector<HTMLElement>(`#${element.children[0]?.id}`)?.focus();
    };
    const disabled = children.length >= Number(schema.maxItems ?? Number.POSITIVE_INFINITY);
    return iconButton("add-element", this.context.strings.addTo(plain(labelOf(name))), icons.plus, add, { disabled });
  }

  #renderControl(field: Field): unknown {
    const { strings } = this.context;
    const { id, kind, typed, wrong, schema } = field;
    const raw = `${typed}`;
    const text = writtenOut(raw);
    const isFolded = hasFolds(raw);
    const input = ({ currentTarget }: Event) => {
      const control = currentTarget as HTMLInputElement;
      const next = text === raw ? control.value : readBack(control.value);
      field.typed = kind === "flag" ? control.checked : next;
      field.wrong = undefined;
      if (wrong || isFolded || hasFolds(next)) this.requestUpdate();
    };
    const invalid = wrong !== undefined;
    const about = wrong === undefined ? nothing : wrongIdOf(id);
    if (kind === "flag") return html`<input id=${id} type="checkbox" .checked=${typed === true} @change=${input} />`;
    if (kind === "choice") {
      const isOptional = !field.isRequired || schema.nullable === true || field.text === "";
      const options = isOptional ? [undefined, ...choicesOf(schema)] : choicesOf(schema);
      return html`<select id=${id} class="field" aria-invalid=${invalid} aria-describedby=${about} @change=${input}>
        ${options.map((it) => {
          const json = it === undefined ? "" : JSON.stringify(it);
          return html`<option value=${json} .selected=${json === typed}>${plain(wordsOf(it, strings))}</option>`;
        })}
      </select>`;
    }
    const read = isFolded ? html`<bdi class="as-read">${folded(raw, strings)}</bdi>` : nothing;
    // Chosen by the initial text, so that typing never replaces the control.
    const first = `${field.text}`;
    if (kind === "lines" || kind === "json" || first.length > LONG_TEXT || first.includes("\n")) {
      const hintId = `${id}-hint`;
      const hint = kind === "lines" ? html`<small id=${hintId}>${strings.onePerLine}</small>` : nothing;
      const described = invalid ? about : kind === "lines" ? hintId : nothing;
      return html`${hint}${read}<textarea id=${id} class="field" rows=${rowsFor(text)} dir="auto" .value=${text} aria-invalid=${invalid} aria-describedby=${described} @input=${input}></textarea>`;
    }
    const isDate = schema.format === "date" && /^(\d{4}-\d\d-\d\d)?$/.test(first);
    return html`${read}<input
        id=${id}
        type=${isDate ? "date" : "text"}
        class="field"
        inputmode=${kind === "number" ? "decimal" : "text"}
        dir="auto"
        .value=${text}
        aria-invalid=${invalid}
        aria-describedby=${about}
        @input=${input}
      />`;
  }
}

/** Whether the field contains other fields. */
function isMany({ kind }: Field): boolean {
  return kind === "group" || kind === "list";
}

const wrongIdOf = (id: string): string => `${id}-wrong`;

function renderWrong(field: Field): TemplateResult | typeof nothing {
  const { id, wrong } = field;
  if (wrong === undefined) return nothing;
  // A message about several fields gets the focus itself.
  const tabindex = isMany(field) ? "-1" : nothing;
  return html`<p class="wrong" id=${wrongIdOf(id)} role="alert" tabindex=${tabindex}>${wrong}</p>`;
}

interface Place {
  /** The schema of all arguments. */
  readonly root: Schema;
  readonly pointer: string;
  readonly depth: number;
  readonly isRequired: boolean;
}

function fieldOf(name: string, before: unknown, written: unknown, place: Place): Field {
  const { root, pointer, depth, isRequired } = place;
  const schema = resolved(written, root);
  const kind = kindOf(before, schema, depth);
  const text = firstText(kind, before);
  count += 1;
  const field = { id: `argument-${count}`, name, pointer, kind, schema, before, text, isRequired, typed: text };
  const { properties, required, items } = schema;
  const own: object = kind === "group" || kind === "list" ? Object(before) : {};
  // Values that the call leaves out can be filled in, except for those edited as JSON.
  const absent = kind === "group" ? Object.keys(Object(properties)).filter((key) => !Object.hasOwn(own, key)) : [];
  const child = (key: string, value: unknown) =>
    fieldOf(key, value, kind === "list" ? items : Object(properties)[key], {
      root,
      pointer: `${pointer}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`,
      depth: depth + 1,
      // Without a schema, every value is required.
      isRequired: kind === "list" || !isRecord(properties) || (Array.isArray(required) && required.includes(key)),
    });
  const added = absent.map((key) => child(key, undefined)).filter((it) => it.kind !== "json");
  return { ...field, children: [...Object.entries(own).map(([key, value]) => child(key, value)), ...added] };
}

function firstText(kind: Kind, before: unknown): string | boolean {
  if (kind === "flag") return before === true;
  if (before === undefined || (before === null && kind !== "json")) return "";
  if (kind === "choice") return JSON.stringify(before);
  return kind === "lines" ? (before as unknown[]).join("\n") : textOf(before);
}

/** The schema with references resolved, and `nullable` in place of a union of `null` and one other schema or type. */
function resolved(written: unknown, root: Schema, level = 0): Schema {
  const schema = isRecord(written) && level <= DEEPEST ? written : {};
  const { $ref, anyOf, oneOf, type, items } = schema;
  if (typeof $ref === "string") {
    const steps = $ref.replace(/^#\/?/, "").split("/").filter(Boolean);
    const target = steps.reduce<unknown>((at, step) => Object(at)[step], root);
    return resolved(target, root, level + 1);
  }
  const all: readonly unknown[] = [anyOf, oneOf].find(Array.isArray) ?? [];
  const others = all.filter((it) => Object(it).type !== "null");
  const nullable = schema.nullable === true || others.length < all.length || [type].flat().includes("null");
  if (others.length === 1) return { ...resolved(others[0], root, level + 1), nullable };
  const consts = others.map((it) => Object(it).const);
  if (others.length > 1 && !consts.includes(undefined)) return { enum: consts, nullable };
  const types = [type].flat().filter((it) => it !== "null");
  const own = types.length === 1 ? types[0] : undefined;
  return { ...schema, type: own, nullable, ...(items !== undefined && { items: resolved(items, root, level + 1) }) };
}

function choicesOf({ enum: all, type }: Schema): readonly unknown[] {
  if (Array.isArray(all)) return all.some(isObject) ? [] : all.filter((it) => it !== null);
  return type === "boolean" ? [true, false] : [];
}

/** Decided by the value, or by the schema if there is no value. */
function kindOf(value: unknown, schema: Schema, depth: number): Kind {
  if (typeof value === "boolean") return "flag";
  if (!isObject(value) && choicesOf(schema).length > 0) return "choice";
  if (isObject(value)) return kindOfObject(value, Object(schema.items), depth);
  const type = value === undefined || value === null ? schema.type : typeof value;
  return type === "string" ? "text" : type === "number" || type === "integer" ? "number" : "json";
}

function kindOfObject(value: object, items: Schema, depth: number): Kind {
  const isList = Array.isArray(value);
  const type = items.type === "integer" ? "number" : (items.type ?? (isList && typeof value[0]));
  const isLine = (it: unknown) => typeof it === type && /^.*\S.*$/.test(`${it}`);
  if (isList && (type === "string" || type === "number") && value.every(isLine)) return "lines";
  if (depth > 0 && (depth >= DEEPEST || sizeOf(value) > MANY_FIELDS)) return "json";
  if (!isList) return depth === 0 || Object.keys(value).length > 0 ? "group" : "json";
  return value.length > 0 && value.every(isRecord) ? "list" : "json";
}

/** The number of values inside. Stops counting above `MANY_FIELDS`. */
function sizeOf(value: unknown): number {
  if (!isObject(value)) return 1;
  const counted = (size: number, it: unknown) => (size > MANY_FIELDS ? size : size + sizeOf(it));
  return Object.values(value).reduce<number>(counted, 0);
}

/** The value typed in a field and the fields inside it. Sets `wrong` where a value is invalid. */
function typedIn(field: Field, strings: Strings): unknown {
  const { kind, typed, text, before, children, isRequired, schema } = field;
  field.wrong = undefined;
  if (kind === "group") {
    const entries = children.map((it) => [it.name, typedIn(it, strings)] as const);
    return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
  }
  if (kind === "list") return children.map((it) => typedIn(it, strings));
  if (typed === text && before === undefined && isRequired) field.wrong = strings.checkValue;
  if (typed === text) return before;
  if (typeof typed === "boolean") return typed;
  if (typed === "" && kind !== "text" && isRequired && schema.nullable) return null;
  if (typed === "" && !isRequired) return undefined;
  const value = typedValue(kind, typed, before, schema);
  field.wrong = value === undefined ? strings.checkValue : limitOf(value, schema, strings);
  return value;
}

/** The typed text as a value; `undefined` if it is invalid. */
function typedValue(kind: Kind, typed: string, before: unknown, { type, items }: Schema): unknown {
  if (kind === "text") return typed;
  if (kind === "number") return numberOf(typed, type);
  return kind === "lines" ? linesOf(typed, before, Object(items)) : parse(typed);
}

function linesOf(typed: string, before: unknown, items: Schema): readonly unknown[] | undefined {
  const isOfTexts = items.type === "string" || (Array.isArray(before) && typeof before[0] === "string");
  const lines = typed.split("\n").filter((line) => line.trim() !== "");
  const values = isOfTexts ? lines : lines.map((line) => numberOf(line, items.type));
  const choices = choicesOf(items);
  return values.every((it) => (choices.length > 0 ? choices.includes(it) : it !== undefined)) ? values : undefined;
}

function numberOf(typed: string, type: unknown): number | undefined {
  const digits = typed.trim().replace(/[\u0660-\u0669]/g, (digit) => `${digit.charCodeAt(0) - 0x660}`);
  // "1,500" is more than a thousand to some people, and less than two to others.
  if (!/^[-+]?(?:\d*[.,\u066b])?\d+$/.test(digits) || /^[-+]?[1-9]\d{0,2}[.,]\d{3}$/.test(digits)) return undefined;
  const number = Number(digits.replace(/[,\u066b]/, "."));
  return type === "integer" && !Number.isInteger(number) ? undefined : number;
}

/** The limit of its schema that a value exceeds, in words. */
function limitOf(value: unknown, schema: Schema, strings: Strings): string | undefined {
  const isText = typeof value === "string";
  const [size, [least, most]] =
    typeof value === "number"
      ? [value, [schema.minimum, schema.maximum]]
      : isText
        ? [[...value].length, [schema.minLength, schema.maxLength]]
        : [Array.isArray(value) ? value.length : Number.NaN, [schema.minItems, schema.maxItems]];
  const words = (limit: number) => (isText ? strings.characters(limit) : limit.toLocaleString(strings.lang));
  if (typeof least === "number" && size < least) return strings.atLeast(words(least));
  return typeof most === "number" && size > most ? strings.atMost(words(most)) : undefined;
}

/** The field at a JSON pointer, or the nearest one around it. */
function fieldAt(field: Field, pointer: string): Field {
  const child = field.children.find((it) => pointer === it.pointer || pointer.startsWith(`${it.pointer}/`));
  return child ? fieldAt(child, pointer) : field;
}

function hasWrong({ wrong, children }: Field): boolean {
  return wrong !== undefined || children.some(hasWrong);
}

/** The number of rows that a field needs to show all of a text. */
function rowsFor(text: string): number {
  return text.split("\n").reduce((rows, { length }) => rows + 1 + Math.floor(length / LONG_TEXT), 2);
}
