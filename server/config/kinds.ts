/** The kinds of values of settings: how their text is parsed, and the error for a wrong one. */

import { BlockList, isIP } from "node:net";
import { availableParallelism } from "node:os";
import { ConfigError } from "../errors.ts";

export interface Kind<T> {
  /** `text` has no space around it and is not empty. @throws ConfigError that names the setting and says what is right */
  parse(text: string, name: string): T;
  /** Whether a variable that is set but empty is an error. Otherwise it counts as not set. */
  refusesEmpty?: true;
}

export function integer(min = 0, max: number = Number.MAX_SAFE_INTEGER): Kind<number> {
  return numeric("a whole number", min, max, /^\d+$/);
}

/** The longest time that a Node timer can wait: with a longer one it would fire at once. */
const MAX_SECONDS = 2_147_483;

export function seconds(min = 0.001): Kind<number> {
  return numeric("a number", min, MAX_SECONDS, /^\d*\.?\d+$/);
}

/** Decimal digits only: `Number` would also read "8e3" and "0x50". */
function numeric(what: string, min: number, max: number, digits: RegExp): Kind<number> {
  const end = max === Number.MAX_SAFE_INTEGER ? "" : ` to ${max}`;
  return {
    parse(text, name) {
      const value = Number(text);
      if (digits.test(text) && value >= min && value <= max) return value;
      throw new ConfigError(`${name} must be ${what} from ${min}${end}, but is "${text}".`);
    },
  };
}

export const workers: Kind<number> = {
  parse(text, name) {
    if (text === "auto") return availableParallelism();
    if (/^\d{1,3}$/.test(text) && Number(text) >= 1 && Number(text) <= 256) return Number(text);
    throw new ConfigError(`${name} must be "auto" or a whole number from 1 to 256, but is "${text}".`);
  },
  refusesEmpty: true,
};

export const plainText: Kind<string> = { parse: (text) => text };

export const path: Kind<string> = { parse: (text) => text, refusesEmpty: true };

/** Paths are compared as received, so only characters are allowed that no client or proxy encodes or resolves. */
export const basePath: Kind<string> = {
  parse(text, name) {
    if (text === "/health" || text === "/metrics") {
      throw new ConfigError(
        `${name} must not be ${text}, which is answered at the root. Choose another, such as /support.`,
      );
    }
    if (/^(?:\/(?!\.{1,2}(?:\/|$))[\w.~-]+)+$/.test(text)) return text;
    throw new ConfigError(
      `${name} must be a path such as /support, which begins with a slash, does not end with one, and has only letters, digits, "-", ".", "_" and "~" between slashes, but is "${text}".`,
    );
  },
};

export function choice<Word extends string>(...words: Word[]): Kind<Word> {
  return {
    parse(text, name) {
      const word = words.find((one) => one === text.toLowerCase());
      if (word !== undefined) return word;
      throw new ConfigError(`${name} must be one of ${words.join(", ")}, but is "${text}".`);
    },
    refusesEmpty: true,
  };
}

export const onOff: Kind<boolean> = {
  parse: (text, name) => choice("on", "off").parse(text, name) === "on",
  refusesEmpty: true,
};

/** A list separated by commas. An empty list is an error: it was probably meant to protect the server. */
function list<Entry>(parseEntry: (entry: string, name: string) => Entry): Kind<readonly Entry[]> {
  return {
    parse(text, name) {
      const entries = text
        .split(",")
        .map((entry) => entry.trim())
        .filter((entry) => entry !== "");
      if (entries.length === 0) throw new ConfigError(emptySentence(name));
      return entries.map((entry) => parseEntry(entry, name));
    },
    refusesEmpty: true,
  };
}

export function emptySentence(name: string): string {
  return `${name} is set but empty. Give it a value, or remove it.`;
}

/** Refuses a placeholder such as `sk-...`, as documentation writes it. The error quotes nothing: it may be the end of a key. */
function refusePlaceholder(text: string, name: string): string {
  if (!/(?:\.\.\.|…)$/.test(text)) return text;
  throw new ConfigError(`${name} ends with "...", as in an example: put your own value there.`);
}

export const secrets = list(refusePlaceholder);

/** Keys travel in a header, which carries visible ASCII only: any other key would never be accepted. */
export const keys = list((entry, name) => {
  if (/^[\x21-\x7e]+$/.test(refusePlaceholder(entry, name))) return entry;
  throw new ConfigError(`${name} must hold keys of visible ASCII characters without spaces, separated by commas.`);
});

/** Origins in the form in which browsers send them, or `*`. */
export const origins = list((entry, name) => {
  const origin = entry === "*" ? entry : originOf(entry);
  if (origin !== undefined) return origin;
  if (/^(?:null$|file:)/i.test(entry)) {
    throw new ConfigError(
      `${name} cannot allow "${entry}", because the pages of every file and sandbox have the origin null: serve the page from a web server, and list that.`,
    );
  }
  throw new ConfigError(`${name} must list origins such as https://www.example.com, but has "${entry}".`);
});

/** Only characters that are safe in a header, and no scheme whose pages have no origin of their own. */
const ORIGIN = /^(?!(?:file|ftp|wss?):)[a-z][a-z\d+.-]*:\/\/(?:[\w.-]+|\[[\da-f:.]+\])(?::\d+)?$/;

/**
 * `scheme://host[:port]`, in lower case and without the scheme's default port (RFC 6454, 6.2). An app has a scheme of
 * its own, such as `capacitor://localhost`. `undefined` for `null` and for everything that is not an origin.
 */
export function originOf(text: string): string | undefined {
  const lower = text.toLowerCase();
  if (!lower.includes("://") || !URL.canParse(lower)) return undefined;
  const { protocol, host, href } = new URL(lower);
  const origin = `${protocol}//${host}`;
  return ORIGIN.test(origin) && (href === origin || href === `${origin}/`) ? origin : undefined;
}

/** Names of servers, in lower case. With a `*`, any text that names a picture could load it from anywhere. */
export const hosts = list((entry, name) => {
  const host = entry.toLowerCase();
  if (/^[\w.-]+$/.test(host) && URL.canParse(`https://${host}`) && new URL(`https://${host}`).host === host)
    return host;
  throw new ConfigError(`${name} must list whole names of servers such as images.example.com, but has "${entry}".`);
});

/** Addresses and ranges, which can be checked for an address. */
export const addressRanges: Kind<BlockList> = {
  parse(text, name) {
    const ranges = new BlockList();
    list((entry) => addRange(ranges, entry, name)).parse(text, name);
    return ranges;
  },
  refusesEmpty: true,
};

function addRange(ranges: BlockList, entry: string, name: string): void {
  const [address = "", prefix, ...more] = entry.split("/");
  const version = isIP(address);
  const bits = version === 4 ? 32 : 128;
  const length = prefix === undefined ? bits : Number(prefix);
  if (version === 0 || !/^\d{1,3}$/.test(prefix ?? "0") || length > bits || more.length > 0) {
    throw new ConfigError(`${name} must list addresses or ranges such as 10.0.0.0/8, but has "${entry}".`);
  }
  ranges.addSubnet(address, length, version === 4 ? "ipv4" : "ipv6");
}

/** A key or a name that travels in a header. The sentence never repeats it: it may be a secret. */
export const token: Kind<string> = {
  parse(text, name) {
    if (/^[\x21-\x7e]+$/.test(refusePlaceholder(text, name))) return text;
    throw new ConfigError(`${name} must be one line of ASCII characters without spaces.`);
  },
};

/** The address of an API. The sentences never repeat it: it may hold a password. */
export const baseUrl: Kind<string> = {
  parse(text, name) {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (url === undefined || !/^https?:$/.test(url.protocol)) {
      throw new ConfigError(`${name} must be an http or https URL, such as https://api.example.com/v1.`);
    }
    if (url.username !== "" || url.password !== "") {
      throw new ConfigError(`${name} must not hold a user name or password: set the key on its own.`);
    }
    if (url.search !== "" || url.hash !== "") {
      throw new ConfigError(`${name} must end with its path: no "?" and no "#".`);
    }
    return text;
  },
};
