/**
 * Checks the `chat` field of an agent, which sets texts, looks and behaviour of the chat, and prepares what is served
 * of it. Loaded only if an agent has the field.
 */

import { createHash } from "node:crypto";
import { readFileSync, realpathSync, statSync } from "node:fs";
import { isAbsolute, relative, resolve } from "node:path";
import { nearestName } from "../config/nearest-name.ts";
import { ConfigError } from "../errors.ts";
import { attributesOf } from "../protocol/button.ts";
import type { ByTheme, OwnersButton, OwnersPage, ToolText } from "../protocol/chat.ts";
import { isRecord } from "../protocol/json.ts";
import type { ChatDefinition } from "./chat-definition.ts";
import { unknownField } from "./fields.ts";
import { LANGUAGE, MAX_LANGUAGES, titleText } from "./tool-words.ts";

/** A file that the page shows. */
export interface OwnersFile {
  readonly type: string;
  readonly bytes: Buffer;
}

/** A checked `chat` field, as it is served. */
export interface CheckedPage {
  readonly page: OwnersPage;
  /** The title of the page at `/`. */
  readonly title: string | undefined;
  /** HTML for the start of the page's head. */
  readonly head: string;
  /** HTML in place of Parley's own icon. */
  readonly icons: string | undefined;
  /** Texts in one language, for clients that do not support several. */
  readonly plain: { welcome?: string; suggestions: string[]; disclaimer?: string };
  /** Images, by the path of their URL. */
  readonly files: ReadonlyMap<string, OwnersFile>;
  /** Where these files are in the project's folder. */
  readonly paths: readonly string[];
  /** Attributes of the launcher, as JSON for the head of `/widget.js`. */
  readonly button: string;
}

interface Checking {
  /** The project's folder. */
  readonly folder: string;
  readonly files: Map<string, OwnersFile>;
  readonly paths: string[];
}

const MAX_SUGGESTIONS = 8;
const MAX_LINKS = 4;
const MAX_TEXT_CHARS = 20_000;
const MAX_FILE_BYTES = 256 * 1024;
const MAX_MS = 999_999_999;

/** Values of the fields that accept one of a few words, as the elements accept them. */
export const CHOICES = {
  corners: ["round", "soft", "sharp"],
  theme: ["auto", "light", "dark"],
  density: ["normal", "compact", "spacious"],
  tools: ["auto", "open", "closed", "hidden", "titles"],
  thinking: ["auto", "open", "closed", "hidden"],
  position: ["bottom-end", "bottom-start", "top-end", "top-start"],
  icon: ["chat", "spark", "question"],
  size: ["medium", "small", "large"],
} as const;

/** Returns a value as it is served. @throws ConfigError that names the place and says what is right */
type Check<Value = unknown> = (value: unknown, at: string) => Value;

/** @throws ConfigError that names the field and says what is right. `warn` gets a sentence for each changed colour. */
export function checkPage(chat: unknown, folder: string, warn: (sentence: string) => void): CheckedPage {
  if (!isRecord(chat)) throw new ConfigError('chat must be an object, such as { welcome: "Hello!" }.');
  const checking = { folder, files: new Map<string, OwnersFile>(), paths: [] };
  const link = { label: textAt, url: urlAt };
  const image = byTheme((value, at) => imageAt(value, at, checking));
  const fields: Record<keyof ChatDefinition, Check> = {
    ...{ title: textAt, welcome: textAt, placeholder: textAt, disclaimer: textAt },
    suggestions: listOf(MAX_SUGGESTIONS, suggestionAt),
    links: listOf(MAX_LINKS, objectOf(link, true)),
    ...{ signIn: objectOf(link), signOut: objectOf(link) },
    accent: (value, at) => accentAt(value, at, warn),
    ...{ logo: image, favicon: image, font: fontAt },
    ...{ corners: oneOf(CHOICES.corners), theme: oneOf(CHOICES.theme), density: oneOf(CHOICES.density) },
    ...{ conversations: booleanAt, feedback: booleanAt },
    ...{ tools: oneOf(CHOICES.tools), thinking: oneOf(CHOICES.thinking) },
    button: objectOf(BUTTON),
  };
  const page: OwnersPage = objectOf(fields)(chat, "chat");
  if (page.logo && !page.favicon) page.favicon = page.logo;
  const { title, welcome, suggestions = [], disclaimer } = page;
  return {
    page,
    title: title && titleText(title),
    head: headOf(page),
    icons: page.favicon && byMedia(page.favicon, (address) => `link rel="icon" href="${address}"`),
    plain: {
      ...(welcome !== undefined && { welcome: titleText(welcome) }),
      suggestions: suggestions.map(({ prompt }) => titleText(prompt)),
      ...(disclaimer !== undefined && { disclaimer: titleText(disclaimer) }),
    },
    files: checking.files,
    paths: checking.paths,
    button: JSON.stringify(byLanguage(page)),
  };
}

/** Tags for the colours of the browser itself, for the start of the head: of two such tags, the first one counts. */
function headOf({ accent, theme = "auto" }: OwnersPage): string {
  const { light, dark } = accent ?? { light: THEMES.light.background, dark: THEMES.dark.background };
  const bars = { auto: { light, dark }, light: { light, dark: light }, dark: { light: dark, dark } }[theme];
  const scheme = theme === "auto" ? "" : `<meta name="color-scheme" content="${theme}">`;
  return scheme + byMedia(bars, (colour) => `meta name="theme-color" content="${colour}"`);
}

/** A tag for each theme of the system, or one for both. */
function byMedia({ light, dark }: ByTheme, tag: (value: string) => string): string {
  if (light === dark) return `<${tag(light)}>`;
  return `<${tag(light)} media="(prefers-color-scheme: light)"><${tag(dark)} media="(prefers-color-scheme: dark)">`;
}

/** The attributes of the launcher's button: under "" the defaults, under a language's code those that differ there. */
function byLanguage(page: OwnersPage): object {
  const all: Record<string, object> = { "": {} };
  for (const [name, value] of attributesOf(page)) {
    const texts = isRecord(value) ? { ...value, "": titleText(value) } : { "": value };
    for (const [language, own] of Object.entries(texts)) all[language] = { ...all[language], [name]: own };
  }
  return all;
}

function oneOf(words: readonly string[]): Check {
  return (value, at) => {
    if (typeof value === "string" && words.includes(value)) return value;
    const meant = typeof value === "string" ? nearestName(value, words, 3) : undefined;
    const advice = meant === undefined ? "" : ` Did you mean "${meant}"?`;
    throw new ConfigError(`${at} must be one of ${words.map((word) => `"${word}"`).join(", ")}.${advice}`);
  };
}

/** A check of one condition. */
function must<Value>(fits: (value: unknown) => boolean, sentence: string): Check<Value> {
  return (value, at) => {
    if (fits(value)) return value as Value;
    throw new ConfigError(`${at} must be ${sentence}`);
  };
}

const booleanAt = must((value) => typeof value === "boolean", "true or false.");

const millisecondsAt = must(
  (value) => Number.isInteger(value) && Number(value) >= 0 && Number(value) <= MAX_MS,
  "a whole number of milliseconds from 0, such as 5000.",
);

function textAt(value: unknown, at: string): ToolText {
  const texts = isRecord(value) ? Object.entries(value) : [["", value] as const];
  if (texts.length === 0 || texts.length > MAX_LANGUAGES) throw new ConfigError(noText(at));
  for (const [language, text] of texts) {
    if (language !== "" && !LANGUAGE.test(language)) {
      throw new ConfigError(
        `${at} has a text for "${language}", which is no language. Use codes such as "en" or "pt-BR".`,
      );
    }
    const of = language === "" ? at : `${at}.${language}`;
    if (typeof text !== "string") throw new ConfigError(noText(of));
    if (text.length > MAX_TEXT_CHARS) throw new ConfigError(`${of} must be at most ${MAX_TEXT_CHARS} characters.`);
  }
  return value as ToolText;
}

const noText = (at: string) => `${at} must be a text, or texts by language: { en: "…", de: "…" }.`;

/** A check of an object: each of its fields is checked, and unknown ones are refused. */
function objectOf<Value extends object>(fields: Readonly<Record<string, Check>>, areAllNeeded = false): Check<Value> {
  const names = Object.keys(fields);
  return (value, at) => {
    if (!isRecord(value)) throw new ConfigError(`${at} must be an object with the fields ${names.join(", ")}.`);
    const mistake = unknownField(value, names, at);
    if (mistake !== undefined) throw new ConfigError(`${at}.${mistake}`);
    const missing = names.find((name) => value[name] === undefined || value[name] === "");
    if (areAllNeeded && missing !== undefined) throw new ConfigError(`${at}.${missing} is missing.`);
    const given = Object.entries(fields).filter(([name]) => value[name] !== undefined);
    return Object.fromEntries(given.map(([name, check]) => [name, check(value[name], `${at}.${name}`)])) as Value;
  };
}

function listOf(most: number, checkItem: Check): Check {
  return (value, at) => {
    if (!Array.isArray(value)) throw new ConfigError(`${at} must be an array.`);
    if (value.length > most) throw new ConfigError(`${at} must have at most ${most} entries, but has ${value.length}.`);
    return value.map((item, index) => checkItem(item, `${at}[${index}]`));
  };
}

function suggestionAt(item: unknown, at: string): object {
  const isPair = isRecord(item) && ("label" in item || "prompt" in item);
  if (isPair) return objectOf({ label: textAt, prompt: textAt }, true)(item, at);
  const text = textAt(item, at);
  return { label: text, prompt: text };
}

/** One value for both themes, or one for each. */
function byTheme(checkOne: Check<string>): Check<ByTheme> {
  const each = objectOf<ByTheme>({ light: checkOne, dark: checkOne }, true);
  return (value, at) => {
    if (isRecord(value)) return each(value, at);
    const one = checkOne(value, at);
    return { light: one, dark: one };
  };
}

/** Base URL to resolve a path against, to see that it does not lead to another server. */
const SOMEWHERE = "http://path.invalid";

const urlAt = must((value) => {
  if (typeof value !== "string" || !URL.canParse(value, SOMEWHERE)) return false;
  const { origin, protocol } = new URL(value, SOMEWHERE);
  const isPath = value.startsWith("/") && origin === SOMEWHERE;
  return isPath || (/^https?:\/\//i.test(value) && /^https?:$/.test(protocol));
}, "an address of http or https, such as https://example.com/privacy, or a path.");

const FAMILY = /^(?:"[^"\\\n]+"|'[^'\\\n]+'|[\p{L}_-][\p{L}\d_-]*(?: [\p{L}_-][\p{L}\d_-]*)*)$/u;

const fontAt = must((value) => {
  if (typeof value !== "string" || value.length > 500) return false;
  return value.split(",").every((family) => FAMILY.test(family.trim()));
}, 'a list of font families, such as "Inter, system-ui, sans-serif".');

const BUTTON: Readonly<Record<keyof OwnersButton, Check>> = {
  ...{ position: oneOf(CHOICES.position), icon: oneOf(CHOICES.icon), size: oneOf(CHOICES.size) },
  ...{ label: textAt, preview: textAt, previewAfter: millisecondsAt, autoOpen: millisecondsAt },
};

/** The background of each theme, as in `tokens.css`, and the channel value towards which contrast increases. */
const THEMES = {
  light: { background: "#ffffff", towards: 0 },
  dark: { background: "#131316", towards: 255 },
} as const;

/** WCAG AA, for text. */
const MIN_CONTRAST = 4.5;

function accentAt(value: unknown, at: string, warn: (sentence: string) => void): ByTheme {
  const given = byTheme(colourAt)(value, at);
  const mended = (["light", "dark"] as const).map((theme) => {
    const { background, towards } = THEMES[theme];
    const colour = legible(given[theme], background, towards);
    if (colour !== given[theme]) {
      const contrast = contrastOf(given[theme], background).toFixed(1);
      warn(
        `${at} ${given[theme]} has a contrast of ${contrast} : 1 in the ${theme} theme, where text needs ${MIN_CONTRAST} : 1. The chat uses ${colour} there. Write { light, dark } to choose another.`,
      );
    }
    return [theme, colour];
  });
  return Object.fromEntries(mended) as ByTheme;
}

function colourAt(value: unknown, at: string): string {
  if (typeof value === "string" && /^#(?:[\da-f]{3}|[\da-f]{6})$/i.test(value)) {
    const hex = value.slice(1).toLowerCase();
    return `#${hex.length === 3 ? [...hex].map((digit) => digit + digit).join("") : hex}`;
  }
  throw new ConfigError(`${at} must be a colour such as "#0a7" or "#00aa77", or { light: "#…", dark: "#…" }.`);
}

/** The colour, mixed with just enough black (0) or white (255) for the contrast. */
function legible(colour: string, background: string, towards: number): string {
  for (let part = 0; part < 1; part += 0.01) {
    const mixed = channelsOf(colour).map((channel) => Math.round(channel + (towards - channel) * part));
    const hex = `#${mixed.map((channel) => channel.toString(16).padStart(2, "0")).join("")}`;
    if (contrastOf(hex, background) >= MIN_CONTRAST) return hex;
  }
  return towards === 0 ? "#000000" : "#ffffff";
}

const channelsOf = (hex: string) => [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));

/** The contrast ratio of WCAG 2.2. */
function contrastOf(one: string, other: string): number {
  const [dark = 0, light = 0] = [luminanceOf(one), luminanceOf(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

function luminanceOf(hex: string): number {
  const [red = 0, green = 0, blue = 0] = channelsOf(hex).map((channel) => {
    const part = channel / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** Reads an image of the project, and returns its address. @throws ConfigError */
function imageAt(value: unknown, at: string, { folder, files, paths }: Checking): string {
  if (typeof value !== "string" || /^(?:[a-z][a-z\d+.-]+:|\/\/)/i.test(value)) {
    throw new ConfigError(`${at} must be a file inside the project's folder, such as "logo.svg".`);
  }
  const path = resolve(folder, value);
  const stats = statSync(path, { throwIfNoEntry: false });
  if (!stats?.isFile()) throw new ConfigError(`${at} names the file "${value}", which is not in ${resolve(folder)}.`);
  // A symbolic link may lead out of the folder.
  const real = realpathSync(path);
  const within = relative(realpathSync(folder), real);
  if (/^\.\.(?:[\\/]|$)/.test(within) || isAbsolute(within)) {
    throw new ConfigError(`${at} names the file "${value}", which is outside of the project's folder. Copy it there.`);
  }
  if (stats.size > MAX_FILE_BYTES) {
    throw new ConfigError(
      `${at} names the file "${value}", which has ${stats.size} bytes: at most 256 KiB are served.`,
    );
  }
  const bytes = readFileSync(real);
  const [ending, type] = imageType(bytes);
  if (ending === undefined) {
    throw new ConfigError(`${at} names the file "${value}", which is no PNG, JPEG, WebP or SVG image.`);
  }
  const digest = createHash("sha256").update(bytes).digest("base64url").slice(0, 22);
  const address = `chat/${digest}.${ending}`;
  files.set(`/${address}`, { type, bytes });
  paths.push(path);
  return address;
}

/** Detects the type by the bytes, whatever the file's name is. */
function imageType(bytes: Buffer): [ending: string, type: string] | [undefined, undefined] {
  const head = bytes.toString("latin1", 0, 12);
  if (head.startsWith("\x89PNG\r\n\x1a\n")) return ["png", "image/png"];
  if (head.startsWith("\xff\xd8\xff")) return ["jpg", "image/jpeg"];
  if (/^RIFF.{4}WEBP/s.test(head)) return ["webp", "image/webp"];
  const isSvg = /^\uFEFF?\s*(?:<\?xml[^>]*>\s*|<!--.*?-->\s*|<!doctype[^>]*>\s*)*<svg[\s/>]/is.test(bytes.toString());
  return isSvg ? ["svg", "image/svg+xml"] : [undefined, undefined];
}
