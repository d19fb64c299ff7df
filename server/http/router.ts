/**
 * Who may enter: everybody; whoever the keys and origins let chat; or who the keys know and knows the id of
 * a run besides; or who has a general key.
 */
export type Access = "open" | "chat" | "run" | "operator";

/** What is served at one method and path. */
export interface Route<Handler> {
  access: Access;
  /** For logs and metrics, where paths of one kind are to be told as one. Default: its path in the table. */
  name?: string;
  handle: Handler;
}

/**
 * Keys are "METHOD /path". Paths are matched whole and raw, nothing is decoded or joined; `{name}` stands
 * for one segment, of any text that is not empty.
 */
export type RouteTable<Handler> = Readonly<Record<`${"GET" | "POST"} /${string}`, Route<Handler>>>;

/** The segments that stood for the names of a route's path. */
export type PathParams = Readonly<Record<string, string>>;

export const open = <Handler>(handle: Handler): Route<Handler> => ({ access: "open", handle });

export const keyed = <Handler>(handle: Handler): Route<Handler> => ({ access: "chat", handle });

export const forOperator = <Handler>(handle: Handler): Route<Handler> => ({
  access: "operator",
  handle,
});

export const byRun = <Handler>(handle: Handler): Route<Handler> => ({ access: "run", handle });

/** Methods that a path answers, for `Allow`; empty when nothing is there. */
export function methodsOf(table: RouteTable<unknown>, path: string): string[] {
  const methods = Object.keys(table)
    .map(methodAndPath)
    .filter(([, pattern]) => match(pattern, path) !== undefined)
    .map(([method]) => method);
  return methods.includes("GET") ? [...methods, "HEAD"] : methods;
}

/** `HEAD` is `GET` without the body (RFC 9110, 9.3.2). */
export function findRoute<Handler>(
  table: RouteTable<Handler>,
  method: string,
  path: string,
): FoundRoute<Handler> | undefined {
  const wanted = method === "HEAD" ? "GET" : method;
  const { whole, patterns } = sorted(table);
  const found = whole.get(`${wanted} ${path}`);
  if (found !== undefined) return found;
  for (const [key, route] of patterns) {
    const [own, pattern] = methodAndPath(key);
    const params = own === wanted ? match(pattern, path) : undefined;
    if (params !== undefined) return { name: pattern, ...route, params };
  }
  return undefined;
}

type FoundRoute<Handler> = Route<Handler> & { name: string; params: PathParams };

/** A table as requests look into it. */
interface Sorted<Handler> {
  /** Paths that are what they are, by the key in the table: what is found is made once. */
  readonly whole: ReadonlyMap<string, FoundRoute<Handler>>;
  /** The routes that name segments: few, where every script has a route of its own. */
  readonly patterns: readonly [string, Route<Handler>][];
}

const tables = new WeakMap<RouteTable<unknown>, Sorted<unknown>>();

function sorted<Handler>(table: RouteTable<Handler>): Sorted<Handler> {
  let known = tables.get(table) as Sorted<Handler> | undefined;
  if (known === undefined) {
    const all = Object.entries(table);
    const whole = all.filter(([key]) => !key.includes("{"));
    known = {
      whole: new Map(whole.map(([key, route]) => [key, { name: methodAndPath(key)[1], ...route, params: {} }])),
      patterns: all.filter(([key]) => key.includes("{")),
    };
    tables.set(table, known);
  }
  return known;
}

function methodAndPath(key: string): [method: string, path: string] {
  const space = key.indexOf(" ");
  return [key.slice(0, space), key.slice(space + 1)];
}

function match(pattern: string, path: string): PathParams | undefined {
  if (!pattern.includes("{")) return pattern === path ? {} : undefined;
  const wanted = pattern.split("/");
  const given = path.split("/");
  if (wanted.length !== given.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, segment] of wanted.entries()) {
    const text = given[index] ?? "";
    if (segment.startsWith("{")) {
      if (text === "") return undefined;
      params[segment.slice(1, -1)] = text;
    } else if (segment !== text) {
      return undefined;
    }
  }
  return params;
}
