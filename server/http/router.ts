/** Who may enter: everybody, or whoever the keys and origins let chat. */
export type Access = "open" | "chat";

/** What is served at one method and path. */
export interface Route<Handler> {
  access: Access;
  handle: Handler;
}

/** Keys are "METHOD /path"; paths are matched whole and raw, nothing is decoded or joined. */
export type RouteTable<Handler> = Readonly<Record<`${"GET" | "POST"} /${string}`, Route<Handler>>>;

export const open = <Handler>(handle: Handler): Route<Handler> => ({ access: "open", handle });

export const keyed = <Handler>(handle: Handler): Route<Handler> => ({ access: "chat", handle });

/** Methods that a path answers, for `Allow`; empty when nothing is there. */
export function methodsOf(table: RouteTable<unknown>, path: string): string[] {
  const methods = Object.keys(table)
    .filter((key) => key.endsWith(` ${path}`))
    .map((key) => key.slice(0, key.indexOf(" ")));
  return methods.includes("GET") ? [...methods, "HEAD"] : methods;
}

/** `HEAD` is `GET` without the body (RFC 9110, 9.3.2). */
export function findRoute<Handler>(
  table: RouteTable<Handler>,
  method: string,
  path: string,
): Route<Handler> | undefined {
  const key = `${method === "HEAD" ? "GET" : method} ${path}`;
  return Object.entries(table).find(([name]) => name === key)?.[1];
}
